"""What files of all kinds share: damage, and numbers as other programs write them."""

import re

from tests.fuzz.case import Case

ESCAPE = "\x1b[31m\x1b]0;title\x07"


def put(lines: list[str], row: int, column: int, value: str) -> str:
    cells = lines[row].split(",")
    cells[column] = value
    return "\n".join([*lines[:row], ",".join(cells), *lines[row + 1 :]])


def plain_number(text: str) -> float:
    """A number as other programs write it; Python's own ``float`` reads more than that."""
    if not re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", text):
        raise ValueError(text)
    return float(text)


def damaged(case: Case, data: bytes) -> tuple[bytes, str]:
    """Bytes with a few of them flipped, cut, repeated, exchanged or made up."""
    rng = case.rng
    place = rng.randrange(len(data))
    end = min(len(data), place + rng.randrange(1, 40))
    way = rng.choice(["flip", "flip", "flip", "flips", "cut", "drop", "repeat", "insert", "random"])
    changed = bytearray(data)
    if way in ("flip", "flips"):
        for at in [place] if way == "flip" else [rng.randrange(len(data)) for _ in range(rng.randrange(2, 30))]:
            changed[at] ^= 1 << rng.randrange(8)
    elif way == "cut":
        del changed[place:]
    elif way == "drop":
        del changed[place:end]
    elif way == "repeat":
        changed[place:place] = data[place:end] * rng.choice([1, 2, 50])
    elif way == "insert":
        changed[place:place] = rng.randbytes(rng.randrange(1, 9))
    else:
        changed = bytearray(rng.randbytes(rng.randrange(1, 400)))
    return bytes(changed), f"{way} at {place}"
