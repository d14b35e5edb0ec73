"""Damage to one of the files of a folder."""

import os
import random
from pathlib import Path

_WAYS = {
    "flip": 60,
    "flips": 8,
    "cut": 6,
    "more": 4,
    "zeros": 4,
    "missing": 4,
    "swap": 4,
    "copy": 3,
    "special": 4,
    "stray": 3,
}


def damage(rng: random.Random, folder: Path) -> str:
    """Spoil one file, and say how."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if not files:
        return "nothing left"
    path = rng.choice(files) if rng.random() < 0.6 else rng.choices(files, [p.stat().st_size + 1 for p in files])[0]
    other = rng.choice(files)
    data = path.read_bytes()
    how = rng.choices(list(_WAYS), list(_WAYS.values()))[0]
    place = rng.randrange(len(data)) if data else 0
    if how in ("flip", "flips") and data:
        places = [place, *(rng.randrange(len(data)) for _ in range(rng.randrange(1, 20) if how == "flips" else 0))]
        path.write_bytes(flipped(rng, data, places))
    elif how == "cut":
        path.write_bytes(data[:place])
    elif how == "more":
        path.write_bytes(data + rng.randbytes(rng.randrange(1, 50)))
    elif how == "zeros":
        end = min(len(data), place + rng.choice([1, 16, 512]))
        path.write_bytes(data[:place] + bytes(end - place) + data[end:])
    elif how == "missing":
        path.unlink()
    elif how in ("swap", "copy"):
        content = other.read_bytes()
        if how == "swap":
            other.write_bytes(data)
        path.write_bytes(content)
        return f"{path} {'exchanged with' if how == 'swap' else 'replaced by'} {other}"
    elif how == "special":
        return f"{path} is {_special(rng, path)}"
    elif how == "stray":
        stray = path.with_name(rng.choice([f".{path.name}.{os.getpid()}.tmp", f"{path.name}~", "core", "999999999999"]))
        stray.write_bytes(rng.randbytes(30))
        return f"{stray} appeared"
    return f"{how} in {path} at {place}"


def flipped(rng: random.Random, data: bytes, places: list[int]) -> bytes:
    """The same bytes with a bit flipped at each of these places."""
    changed = bytearray(data)
    for place in places:
        changed[place] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _special(rng: random.Random, path: Path) -> str:
    """Put what is no regular file in a file's place."""
    path.unlink()
    made = {
        "a folder": path.mkdir,
        "a pipe": lambda: os.mkfifo(path),
        "a loop": lambda: path.symlink_to(path.name),
        "/dev/zero": lambda: path.symlink_to("/dev/zero"),
    }
    kind = rng.choice(list(made))
    made[kind]()
    return kind
