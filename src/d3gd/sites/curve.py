"""ZeroMQ with CURVE: keys like those of ssh, no certificate authority.

A site has at most one port, a ROUTER socket, for all sites that dial it, and a DEALER socket for every site that it
dials. Who dials does not depend on the way that models flow. The end that is dialled checks the other's key against its
contacts (ZAP), the end that dials knows whose key to expect; ZeroMQ then names the sender of every message.
"""

import math
import time
from collections.abc import Sequence
from typing import Any

import zmq
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

from d3gd.errors import SettingsError, TransportError
from d3gd.sites.keys import KeyPair
from d3gd.sites.wire import Arrival, Contact, Event, Wire

_ZAP = "inproc://zeromq.zap.01"
_QUEUE = 64  # messages; senders have far fewer under way
_LINGER = 1000  # milliseconds in which a closing site may deliver its last messages
_PULSE, _DEAD = 5_000, 20_000  # milliseconds between signs of life of a connection, and without them until it ends
_RETRY, _RETRY_MOST = 200, 5_000  # milliseconds between attempts to dial
_AT_ONCE = 256  # messages that are read before others have their turn
_LAST, _MORE = int(zmq.NOBLOCK), int(zmq.NOBLOCK | zmq.SNDMORE)
_COPIED = 1 << 20  # bytes up to which a copy costs less than to learn that a frame has been sent
_TOLD = 1000  # events that are told, of strangers above all: they cost an attacker nothing
_SEEN = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CONNECT_RETRIED
)


class CurveWire(Wire):
    """The sockets of a site.

    Args:
        keys: The site's keys.
        bind: The address at which others reach it; None if it only dials.
        largest: Limit on the bytes of a frame.
    """

    def __init__(self, keys: KeyPair, bind: str | None, *, largest: int) -> None:
        self._keys, self._largest = keys, largest
        self._context: Any = zmq.Context()
        self._poller = zmq.Poller()
        self._contacts: dict[str, Contact] = {}
        self._names: dict[str, str] = {}  # by public key
        self._routes: dict[str, bytes] = {}  # of sites that dialled
        self._dealers: dict[str, Any] = {}
        self._dialled: dict[Any, str] = {}  # the sites at the other ends of these
        self._monitors: dict[Any, str] = {}  # sockets, and the site that they watch
        self._events: list[Arrival | Event] = []
        self._told: set[str] = set()
        self._state: dict[str, str] = {}  # of the sites that are dialled
        self._again: dict[str, float] = {}  # when to dial a site again that refused this one
        self._zap = self._opened(zmq.ROUTER)
        self._zap.bind(_ZAP)
        self._router: Any = None
        if bind is not None:
            self._router = self._socket(zmq.ROUTER)
            self._router.setsockopt(zmq.ROUTER_MANDATORY, 1)
            self._router.setsockopt(zmq.CURVE_SERVER, 1)
            self._watch(self._router, "")
            try:
                self._router.bind(bind)
            except zmq.ZMQError as error:
                self.close()
                raise TransportError(
                    f"{bind} cannot be bound ({error.strerror}); is another process using it, or is it no address of "
                    "this host?"
                ) from None

    @property
    def bound(self) -> str:
        """The address that is bound, with the port that the system chose."""
        return str(self._router.getsockopt_string(zmq.LAST_ENDPOINT))

    def meet(self, contacts: Sequence[Contact]) -> None:
        """Replace the contacts."""
        wanted = {contact.name: contact for contact in contacts}
        for name, contact in self._contacts.items():
            if wanted.get(name) != contact:
                self._part(name)
        before, self._contacts = self._contacts, wanted
        self._names = {contact.key: contact.name for contact in contacts}
        for name, contact in wanted.items():
            if contact.address is not None and before.get(name) != contact:
                self._dial(contact)

    def send(self, to: str, frames: Sequence[Any]) -> bool:
        """Send a message; False if the site is not connected or does not keep up."""
        try:
            if to in self._dealers:
                socket = self._dealers[to]
            elif to in self._routes:
                socket = self._router
                socket.send(self._routes[to], _MORE)
            else:
                return False
            for frame in frames[:-1]:
                socket.send(frame, _MORE, copy=False)
            socket.send(frames[-1], _LAST, copy=False)
        except zmq.ZMQError:  # not connected, or its queue is full
            return False
        return True

    def receive(self, seconds: float) -> list[Arrival | Event]:
        """Return what has arrived."""
        for socket, _ in self._poller.poll(0 if self._events else math.ceil(1000 * seconds)):
            if socket is self._zap:
                self._admit()
            elif socket in self._monitors:
                self._look(socket)
            else:
                self._read(socket)
        for name in [name for name, due in self._again.items() if due <= time.monotonic()]:
            del self._again[name]
            if name in self._contacts:
                self._part(name)
                self._dial(self._contacts[name])
        found, self._events = self._events, []
        return found

    def close(self) -> None:
        """End all connections, after a second for what is under way."""
        self._context.destroy(linger=_LINGER)

    def _opened(self, kind: int) -> Any:
        socket = self._context.socket(kind)
        self._poller.register(socket, zmq.POLLIN)
        return socket

    def _socket(self, kind: int) -> Any:
        socket = self._opened(kind)
        options = {
            zmq.MAXMSGSIZE: self._largest,
            zmq.SNDHWM: _QUEUE,
            zmq.RCVHWM: _QUEUE,
            zmq.LINGER: _LINGER,
            zmq.HEARTBEAT_IVL: _PULSE,
            zmq.HEARTBEAT_TIMEOUT: _DEAD,
            zmq.RECONNECT_IVL: _RETRY,
            zmq.RECONNECT_IVL_MAX: _RETRY_MOST,
            zmq.IPV6: 1,
        }
        for option, value in options.items():
            socket.setsockopt(option, value)
        socket.copy_threshold = _COPIED
        socket.curve_publickey, socket.curve_secretkey = self._keys.public.encode(), self._keys.secret.encode()
        return socket

    def _watch(self, socket: Any, name: str) -> None:
        monitor = socket.get_monitor_socket(_SEEN)
        self._poller.register(monitor, zmq.POLLIN)
        self._monitors[monitor] = name

    def _dial(self, contact: Contact) -> None:
        socket = self._socket(zmq.DEALER)
        socket.setsockopt(zmq.IMMEDIATE, 1)  # nothing waits for a connection: it would be out of date by then
        socket.curve_serverkey = contact.key.encode()
        self._watch(socket, contact.name)
        self._dealers[contact.name], self._dialled[socket] = socket, contact.name
        try:
            socket.connect(contact.address)
        except zmq.ZMQError as error:
            raise SettingsError(
                f"{contact.address} cannot be dialled ({error.strerror}); correct the address"
            ) from None

    def _part(self, name: str) -> None:
        self._routes.pop(name, None)
        socket = self._dealers.pop(name, None)
        if socket is None:
            return
        del self._dialled[socket]
        self._poller.unregister(socket)
        socket.disable_monitor()
        for monitor in [monitor for monitor, who in self._monitors.items() if who == name]:
            self._poller.unregister(monitor)
            del self._monitors[monitor]
            monitor.close(linger=0)
        socket.close(linger=0)

    def _read(self, socket: Any) -> None:
        for _ in range(_AT_ONCE):
            try:
                frames = [socket.recv(_LAST, copy=False)]
                while frames[-1].more:
                    frames.append(socket.recv(_LAST, copy=False))
            except zmq.ZMQError:
                return
            if socket is self._router:
                route, *frames = frames
                sender = self._names.get(str(frames[0].get("User-Id"))) if frames else None
                if sender is None:
                    continue  # no contact any more
                self._routes[sender] = route.bytes
            else:
                sender = self._dialled[socket]
            if frames:
                self._events.append(Arrival(sender, [frame.buffer for frame in frames]))

    def _admit(self) -> None:
        """Answer whether a key may connect (ZAP, rfc.zeromq.org/spec/27)."""
        route, empty, version, request, _, address, _, mechanism, *credentials = self._zap.recv_multipart()
        key = z85.encode(credentials[0]).decode() if mechanism == b"CURVE" and credentials else ""
        known = key in self._names
        status = (b"200", b"OK", key.encode()) if known else (b"400", b"unknown key", b"")
        self._zap.send_multipart([route, empty, version, request, *status, b""])
        if not known:
            self._tell(Event(address.decode("ascii", "replace"), "stranger", f"it has the unknown key {key}"))

    def _look(self, monitor: Any) -> None:
        name, event = self._monitors[monitor], recv_monitor_message(monitor, zmq.NOBLOCK)["event"]
        if not name:
            return  # of sites that dial, ZAP and their messages tell more
        before = self._state.get(name, "")
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._told = {line for line in self._told if not line.startswith(f"{name} ")}
            self._state[name] = "connected"
            self._events.append(Event(name, "connected"))
        elif event == zmq.EVENT_DISCONNECTED:
            if before == "connected":
                self._events.append(Event(name, "disconnected"))
            self._state[name] = "lost" if before == "connected" else before
        elif event == zmq.EVENT_CONNECT_RETRIED:
            # The first attempt after a connection says nothing about whether anyone is there.
            if before in ("", "retried"):
                self._tell(Event(name, "unreachable", "nothing answers at its address"))
            self._state[name] = "retried"
        elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self._state[name] = "refused"
            self._again[name] = time.monotonic() + _RETRY_MOST / 1000  # ZeroMQ itself gives up
            self._tell(Event(name, "refused", "it does not know this site's public key"))
        else:
            self._state[name] = "refused"
            self._tell(
                Event(name, "refused", "the handshake failed: it has another key than the file says, or the line broke")
            )

    def _tell(self, event: Event) -> None:
        """Tell of an event once, not at every attempt."""
        line = f"{event.who} {event.what} {event.why}"
        if line not in self._told and len(self._told) < _TOLD:
            self._told.add(line)
            self._events.append(event)
