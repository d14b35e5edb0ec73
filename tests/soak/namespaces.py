"""A bad network of real packets: a network namespace per site, and between them loss, delay and a limited rate.

The kernel's netem does that where there is one. Else a switch in this process does the same to every packet that
leaves a namespace, by a TUN device each. Both need root on Linux, and iproute2.
"""

import contextlib
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time
from pathlib import Path

DELAY, RATE, LOSS = 0.05, 10e6 / 8, 0.05  # seconds, bytes per second, share of packets
_QUEUE = 0.2  # seconds of bytes that may wait for the rate; more are lost
_TUNSETIFF, _TUN, _NO_PI = 0x400454CA, 0x0001, 0x1000
_BRIDGE = "switch"


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Namespaces:
    """A namespace per site, with the address 10.77.0.(1 + its place).

    Args:
        names: The sites.
        seed: Of the packets that are lost.

    Attributes:
        kind: How packets are lost and delayed, in words.
    """

    def __init__(self, names, seed=0):
        self.address = {name: f"10.77.0.{place}" for place, name in enumerate(names, 1)}
        self._prefix, self._switch = f"soak{os.getpid()}", None
        try:
            for name in names:
                ip("netns", "add", self._named(name))
                self.inside(name, "ip", "link", "set", "lo", "up")
            if has_netem():
                self.kind = "network namespaces, with netem"
                self._bridged()
            else:
                self.kind = "network namespaces, with a switch in user space"
                self._switch = Switch({self.address[name]: self._tunnel(name) for name in names}, seed)
        except BaseException:
            self.close()
            raise

    def command(self, name, words):
        """The words that run a command at a site."""
        return ["ip", "netns", "exec", self._named(name), *words]

    def inside(self, name, *words):
        subprocess.run(self.command(name, words), check=True, capture_output=True)

    def cut(self, pairs):
        """Break some links, in both directions, and keep them broken until the next call."""
        for name in self.address:
            self.inside(name, "ip", "route", "flush", "type", "blackhole")
        for name, other in pairs:
            self.inside(name, "ip", "route", "add", "blackhole", f"{self.address[other]}/32")

    def harm(self):
        found = self._switch
        return "" if found is None else f"{found.lost} packets lost of {found.lost + found.passed}"

    def close(self):
        if self._switch is not None:
            self._switch.close()
        for name in [*self.address, _BRIDGE]:
            subprocess.run(["ip", "netns", "del", self._named(name)], capture_output=True)

    def _named(self, name):
        return f"{self._prefix}-{name}"

    def _bridged(self):
        ip("netns", "add", self._named(_BRIDGE))
        self.inside(_BRIDGE, "ip", "link", "add", "br", "type", "bridge")
        self.inside(_BRIDGE, "ip", "link", "set", "br", "up")
        for name, address in self.address.items():
            ip("-n", self._named(name), "link", "add", "out", "type", "veth", "peer", f"to-{name}",
               "netns", self._named(_BRIDGE))  # fmt: skip
            self.inside(_BRIDGE, "ip", "link", "set", f"to-{name}", "master", "br", "up")
            self.inside(name, "ip", "address", "add", f"{address}/24", "dev", "out")
            self.inside(name, "ip", "link", "set", "out", "up")
            self.inside(name, "tc", "qdisc", "add", "dev", "out", "root", *netem())

    def _tunnel(self, name):
        """Make the device of a namespace, and return its other end."""
        end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        device = f"{self._prefix[-8:]}{name}"
        fcntl.ioctl(end, _TUNSETIFF, struct.pack("16sH", device.encode(), _TUN | _NO_PI))
        ip("link", "set", device, "netns", self._named(name))
        self.inside(name, "ip", "address", "add", f"{self.address[name]}/24", "dev", device)
        self.inside(name, "ip", "link", "set", device, "up")
        return end


class Switch:
    """Passes packets on between TUN devices, late, at a limited rate, and not all of them.

    Args:
        ends: The devices, by the addresses behind them.
        seed: Of the packets that are lost.
    """

    def __init__(self, ends, seed):
        self._ends = {bytes(map(int, address.split("."))): end for address, end in ends.items()}
        self._random, self.lost, self.passed = random.Random(seed), 0, 0
        self._free = dict.fromkeys(ends.values(), 0.0)  # when what a device has sent so far will have left it
        self._late, self._number, self._closing = [], 0, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self):
        self._closing.set()
        self._thread.join(5)
        for end in self._ends.values():
            os.close(end)

    def _run(self):
        ends = list(self._ends.values())
        while not self._closing.is_set():
            until = self._late[0][0] - time.monotonic() if self._late else 0.1
            for end in select.select(ends, [], [], min(0.1, max(0.0, until)))[0]:
                with contextlib.suppress(BlockingIOError):
                    for _ in range(64):
                        self._take(end, os.read(end, 65536))
            now = time.monotonic()
            while self._late and self._late[0][0] <= now:
                _, _, to, packet = heapq.heappop(self._late)
                with contextlib.suppress(OSError):  # its site is being restarted, or its queue is full
                    os.write(to, packet)

    def _take(self, end, packet):
        to, now = self._ends.get(packet[16:20]), time.monotonic()
        leaves = max(self._free[end], now) + len(packet) / RATE
        if to is None or self._random.random() < LOSS or leaves > now + _QUEUE:
            self.lost += 1
            return
        self._free[end], self._number, self.passed = leaves, self._number + 1, self.passed + 1
        heapq.heappush(self._late, (leaves + DELAY, self._number, to, packet))


def netem():
    return ["netem", "delay", f"{1000 * DELAY:g}ms", "loss", f"{100 * LOSS:g}%", "rate", f"{8 * RATE / 1e6:g}mbit"]


def has_netem():
    """Whether the kernel has netem."""
    name = f"soak{os.getpid()}-probe"
    ip("netns", "add", name)
    try:
        words = ["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "lo", "root", *netem()]
        return subprocess.run(words, capture_output=True).returncode == 0
    finally:
        ip("netns", "del", name)


def possible():
    """Whether this process may make network namespaces and impair what passes between them."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return False
    try:
        return has_netem() or Path("/dev/net/tun").exists()
    except (OSError, subprocess.CalledProcessError):
        return False
