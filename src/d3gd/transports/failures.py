"""What went wrong between ranks, in words that name the right one."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class LateError(Exception):
    """A wait that took too long, or a connection that broke.

    Args:
        peer: The rank that did not answer.
        broken: Whether the connection broke, long before the deadline.
    """

    def __init__(self, peer: int, *, broken: bool = False) -> None:
        super().__init__(peer)
        self.peer, self.broken = peer, broken


class MisfitError(LateError):
    """A message other than the expected one."""


class Advice(NamedTuple):
    """What a user can do, as it applies to how the ranks were started.

    Attributes:
        more_time: How to allow more time.
        resumes: How to continue; empty if that is not possible.
    """

    more_time: str
    resumes: str


def explained(
    late: LateError, what: str, waited: float, found: Mapping[int, str], silent: Sequence[int], advice: Advice
) -> str:
    """Return the message about a transfer that failed.

    Args:
        late: How it failed.
        what: What was to be transferred.
        waited: The seconds that this rank has waited.
        found: What the ranks that answer were doing: the number of their transfers, and a description of the last.
        silent: The ranks that do not answer.
        advice: What a user can do.
    """
    posts = {rank: text.partition(" ")[0] for rank, text in found.items()}
    shown = {rank: text.partition(" ")[2] for rank, text in found.items()}
    pairs = [(a, b) for b in sorted(found) for a in sorted(found) if a < b and posts[a] == posts[b]]
    different = [(a, b) for a, b in pairs if shown[a] != shown[b]]
    resume = f"; {advice.resumes}" if advice.resumes else ""
    if different:
        one, other = different[0]
        return (
            f"rank {other} is at ({shown[other]}) while rank {one} is at ({shown[one]}); messages do not match: give "
            "all ranks the same experiment, equally many steps, and the same other calls between them"
        )
    if isinstance(late, MisfitError):
        return f"what rank {late.peer} sent is not ({what}); give all ranks the same experiment"
    if silent and late.broken:
        return (
            f"the connection to {named(silent)} broke: killed, out of memory, failed, or done with fewer steps; check "
            f"its output{resume}"
        )
    if silent:
        return (
            f"no message from {named(silent)} for {_rounded(waited)} s: ended, hanging, very slow, or done with fewer "
            f"steps; check its output, or allow more time ({advice.more_time}){resume}"
        )
    if late.broken:
        return f"the connection to rank {late.peer} broke, though it still runs; is the network working?"
    return f"no valid message from rank {late.peer} for {_rounded(waited)} s; is the network working?"


def named(ranks: Sequence[int]) -> str:
    """Return ranks in words."""
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


def _rounded(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= 1 else f"{seconds:.1g}"
