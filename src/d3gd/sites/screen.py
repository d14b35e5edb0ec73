"""A site's status as lines of text."""

import time
from collections.abc import Iterator
from typing import Any


def lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that show a status."""
    age = time.time() - facts["time"]
    of = f" of {facts['iterations']}" if facts["iterations"] else ""  # a script may not say
    yield (
        f"{facts['site']}: iteration {facts['iteration']}{of}, {facts['sites']} sites, waited {facts['waited']:.1f} s, "
        f"{facts['missed']} messages missed; written {age:.0f} s ago"
    )
    for peer in facts["neighbours"]:
        ways = " and ".join(["heard"] * peer["heard"] + ["hears it"] * peer["hears"])
        if peer["age"] is None:
            yield f"  {peer['name']} ({ways}): never heard of{_because(peer)}"
            continue
        counts = [f"{_bytes(peer.get(word, 0))} {word[6:]}" for word in ("bytes_received", "bytes_sent")]
        lost = [
            f"{peer[word]} {word.replace('_', ' ')}" for word in ("late", "sent_again", "dropped") if peer.get(word)
        ]
        yield (
            f"  {peer['name']} ({ways}): iteration {peer['iteration']}, {peer['age']:.0f} s ago, "
            f"{', '.join([*counts, *lost])}{_because(peer)}"
        )


def _because(peer: dict[str, Any]) -> str:
    return f"; {peer['trouble']}" if peer["trouble"] else ""


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
