"""What is wrong with a site's links, and at whose end."""

import socket
import time
from typing import NamedTuple

from d3gd.errors import D3GDError
from d3gd.sites.hub import Hub
from d3gd.sites.peer import Peer
from d3gd.sites.session import opened
from d3gd.sites.settings import SiteFile
from d3gd.sites.wire import Contact

_DIAL = 5.0  # seconds for a connection
_CLOCK = 5.0  # seconds by which clocks may differ


class Finding(NamedTuple):
    """One line of the report."""

    sound: bool
    text: str


def examine(file: SiteFile, seconds: float) -> list[Finding]:
    """Resolve, dial, and compare keys, clocks, versions and settings; return a finding per link.

    Args:
        file: The site's file.
        seconds: How long to wait for answers.
    """
    try:
        keys = file.keys()
        settings = file.agreed()
        file.require_data()
    except D3GDError as error:
        return [Finding(False, f"{file.settings.name}: {error}")]
    found = [Finding(True, f"{file.settings.name}: its public key is {keys.public}")]
    contacts = {contact.name: contact for contact in file.neighbours.contacts()}
    trouble = {name: why for name, contact in contacts.items() if (why := _dialled(contact))}
    try:
        with opened(file, settings) as hub:
            hub.wait(lambda: all(peer.accepted and peer.greeted for peer in hub.peers()), seconds)
            for peer in sorted(hub.peers(), key=lambda peer: peer.name):
                found += _links(file.settings.name, peer, contacts[peer.name], trouble.get(peer.name, ""), hub)
    except D3GDError as error:
        found.append(Finding(False, f"{file.settings.name}: {error}; if it runs: d3gd site status {file.path}"))
    return found


def _links(own: str, peer: Peer, contact: Contact, trouble: str, hub: Hub) -> list[Finding]:
    links = [f"{peer.name} -> {own}"] * peer.heard + [f"{own} -> {peer.name}"] * peer.hears
    if peer.accepted and peer.greeted:
        said = f"connected; d3gd {peer.version}, iteration {peer.at}, clock {peer.offset:+.1f} s"
        sound = abs(peer.offset) <= _CLOCK
        remark = "" if sound else "; set the clock, at one end or the other"
        return [Finding(sound, f"{link}: {said}{remark}") for link in links]
    return [Finding(False, f"{link}: {_reason(own, peer, contact, trouble, hub)}") for link in links]


def _reason(own: str, peer: Peer, contact: Contact, trouble: str, hub: Hub) -> str:
    if peer.last is not None and not peer.accepted:
        return f"{peer.refusal}; make the files of {own} and {peer.name} agree"
    if peer.last is not None:
        return f"{peer.name} does not accept this site's settings; its log says why"
    if contact.address is None:
        strangers = f"; refused meanwhile: {hub.strangers[-1]}" if hub.strangers else ""
        return (
            f"{peer.name} has not dialled this site: it does not run, has another address for {own}, or a firewall "
            f"at {own} is closed{strangers}"
        )
    if trouble:
        return trouble
    if "public key" in peer.refusal:
        return f"{peer.name} refuses this site's key: the file at {peer.name} has another one for {own}"
    if "another key" in peer.refusal:
        return (
            f"what answers at {contact.address} has not the key that this file gives for {peer.name}: correct it here"
        )
    return f"{contact.address} accepts connections but does not answer; is it {peer.name}?"


def _dialled(contact: Contact) -> str:
    """Return what is wrong with an address, or an empty string."""
    if contact.address is None:
        return ""
    host, _, port = contact.address.removeprefix("tcp://").rpartition(":")
    try:
        places = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        return f"{host} is not known ({error.strerror}); correct its address here, or the name service"
    began = time.monotonic()
    for family, kind, protocol, _, address in places:
        with socket.socket(family, kind, protocol) as dialled:
            dialled.settimeout(max(0.1, _DIAL - (time.monotonic() - began)))
            try:
                dialled.connect(address)
                return ""
            except ConnectionRefusedError:
                why = f"nobody listens at {contact.address}; start {contact.name}, or correct its address here"
            except OSError as error:
                why = (
                    f"{contact.address} cannot be reached ({error.strerror or error}); a firewall at {contact.name} or "
                    "on the way is closed, or the address is wrong"
                )
    return why
