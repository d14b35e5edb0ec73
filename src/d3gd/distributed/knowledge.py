"""What agents may know, by what their method needs."""

from typing import Literal, TypeAlias, get_args

from d3gd.errors import D3GDError

# Each includes what agents know under those before it. All know their in-neighbours and the number of agents.
Needs: TypeAlias = Literal["in-neighbours", "out-degrees", "undirected links", "the network", "all agents"]

_ORDER = get_args(Needs)


def stronger(needs: Needs, others: Needs) -> Needs:
    """Return the stronger of two requirements.

    Example:
        >>> stronger("out-degrees", "in-neighbours")
        'out-degrees'
    """
    return max(needs, others, key=_ORDER.index)


def knows(needs: Needs, what: Needs) -> bool:
    """Whether agents with some needs know what others need."""
    return _ORDER.index(needs) >= _ORDER.index(what)


def require_knowledge(needs: Needs, least: Needs, what: str, instead: str) -> None:
    """Raise an error unless a method with these needs may read something.

    Args:
        needs: What the method needs.
        least: The weakest needs with which it may.
        what: What it reads.
        instead: What to use instead.
    """
    if not knows(needs, least):
        raise D3GDError(
            f"a decentralized algorithm with needs = {needs!r} requested {what}; its agents know only what arrives "
            f"along their in-edges: use {instead}, or declare it with needs = {least!r}"
        )
