"""Keys of sites: a secret one in a file that only its owner can read, and a public one to hand out.

Both are CURVE25519 keys in the 40 characters of ZeroMQ's Z85 encoding.
"""

import os
import stat
from pathlib import Path
from typing import NamedTuple

import zmq
from zmq.utils import z85

from d3gd import reading
from d3gd.errors import RecordError, SettingsError
from d3gd.validation import shown

_KIND = "d3gd site secret key"
_LENGTH = 40  # characters of a key
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class KeyPair(NamedTuple):
    """The keys of a site."""

    public: str
    secret: str

    def __repr__(self) -> str:
        return f"KeyPair(public={self.public!r})"  # a secret has no place in logs


def generate() -> KeyPair:
    """Return new keys.

    Example:
        >>> pair = generate()
        >>> public_of(pair.secret) == pair.public
        True
    """
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())


def public_of(secret: str) -> str:
    """Return the public key of a secret one."""
    return zmq.curve_public(secret.encode()).decode()


def require_key(key: str, where: str) -> str:
    """Return a key, or raise an error unless it is one."""
    try:
        if len(key) != _LENGTH or len(z85.decode(key.encode("ascii"))) != 32:
            raise ValueError
    except (KeyError, ValueError, UnicodeError):
        raise SettingsError(
            f"{where} = {shown(key)} is no public key; give the {_LENGTH} characters that `d3gd site keygen` prints"
        ) from None
    return key


def write_secret(path: Path, pair: KeyPair) -> None:
    """Write a new file for a secret key, readable by its owner only; an existing file is never overwritten."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise RecordError(f"{path} already exists; a secret key is never overwritten: choose another name") from None
    except OSError as error:
        raise RecordError(f"{path} cannot be written ({error.strerror}); choose another place") from error
    with os.fdopen(file, "w") as opened:
        opened.write(f"{_KIND}\n{pair.secret}\n")


def read_secret(path: Path) -> KeyPair:
    """Return the keys of a secret key's file, or raise an error if others could read it."""
    text = reading.text(path, "a secret key: d3gd site keygen writes one", error=SettingsError)
    if os.name == "posix" and path.stat().st_mode & _OTHERS:
        raise SettingsError(
            f"{path} can be read by others (mode {path.stat().st_mode & 0o777:03o}); a secret key needs mode 600: "
            f"chmod 600 {path}, and make a new one if others have seen it"
        )
    kind, _, secret = text.strip().partition("\n")
    try:
        if kind != _KIND or len(secret) != _LENGTH:
            raise ValueError
        return KeyPair(public_of(secret), secret)
    except (ValueError, zmq.ZMQError):
        raise SettingsError(f"{path} is no secret key of a site; write one with: d3gd site keygen") from None
