"""What moves bytes between sites: an interface, so that another wire can take the place of ZeroMQ's."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

Happening: TypeAlias = Literal["connected", "disconnected", "refused", "unreachable", "stranger"]


class Contact(NamedTuple):
    """Another site, as a wire sees it.

    Attributes:
        name: Its name.
        key: Its public key.
        address: Where to dial it; None if it dials this site.
    """

    name: str
    key: str
    address: str | None = None


class Arrival(NamedTuple):
    """A message from an authenticated site."""

    sender: str
    frames: Sequence[Any]


class Event(NamedTuple):
    """What happened to a connection.

    Attributes:
        who: The name of the site, or the address of a stranger.
        what: What happened.
        why: The reason, in words.
    """

    who: str
    what: Happening
    why: str = ""


class Wire(ABC):
    """Authenticated, encrypted connections to some sites; used by one thread at a time.

    Messages between two sites arrive in order or not at all, and nothing arrives from sites that are not contacts.
    """

    @abstractmethod
    def send(self, to: str, frames: Sequence[Any]) -> bool:
        """Send a message; return False at once if that is not possible now."""

    @abstractmethod
    def receive(self, seconds: float) -> list[Arrival | Event]:
        """Return what has arrived, waiting for it for some seconds."""

    @abstractmethod
    def meet(self, contacts: Sequence[Contact]) -> None:
        """Replace the contacts: connect to new ones, and end the connections to others."""

    @abstractmethod
    def close(self) -> None:
        """End all connections."""
