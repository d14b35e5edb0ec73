"""Tables of the studies' pages."""

from collections.abc import Sequence


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, ["---"] * len(header), *lines))
