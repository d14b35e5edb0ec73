"""Ports that nobody else takes while a test starts processes that bind them."""

import os
import socket
from collections import deque

RANGE = range(20_000, 32_000)  # below those that systems give to outgoing connections
_KEPT = 200  # reservations at a time; far more than one test needs

_reserved = deque()
_next = os.getpid() * 997  # so that processes begin in different places


def ports(count):
    """Free TCP ports of the loopback interface, reserved for this process.

    Another process that calls this function does not get them as long as this one holds the UDP ports of the same
    numbers. A port that was asked for and released, as usual, may go to somebody else before it is bound.
    """
    global _next
    found = []
    for _ in RANGE:
        port = RANGE[_next % len(RANGE)]
        _next += 1
        if reserve(port):
            found.append(port)
        if len(found) == count:
            return found
    raise AssertionError(f"no {count} free ports in {RANGE}")


def reserve(port):
    """Reserve a port, and return whether it was free."""
    held = socket.socket(type=socket.SOCK_DGRAM)
    try:
        held.bind(("127.0.0.1", port))
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
    except OSError:
        held.close()
        return False
    _reserved.append(held.detach())  # open until the process ends
    while len(_reserved) > _KEPT:
        os.close(_reserved.popleft())
    return True
