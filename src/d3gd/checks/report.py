"""The results of a series of checks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from d3gd.errors import D3GDError

Verdict: TypeAlias = Literal["passed", "failed", "skipped"]


class FailedCheckError(Exception):
    """A check that failed, with what was found."""


class SkippedCheckError(Exception):
    """A check that does not apply, with the reason."""


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        name: What was checked.
        verdict: The verdict.
        detail: What was found.
    """

    name: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True)
class Report:
    """The checks of one method or problem; printed, a table.

    Attributes:
        subject: What was checked.
        checks: The checks, in order.
    """

    subject: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> list[Check]:
        """The checks that failed."""
        return [check for check in self.checks if check.verdict == "failed"]

    def __repr__(self) -> str:
        wide = max(len(check.name) for check in self.checks)
        lines = [f"{check.name:{wide}}  {check.verdict:7}  {check.detail}".rstrip() for check in self.checks]
        verdict = "all checks passed" if self.passed else f"{len(self.failures)} of {len(self.checks)} checks failed"
        return "\n".join([f"{self.subject}: {verdict}", *(f"  {line}" for line in lines)])


def report(subject: str, checks: Mapping[str, Callable[[], str]], *, show: bool) -> Report:
    """Make every check; if the first fails, the others have nothing to go by and are skipped.

    Args:
        subject: What is checked.
        checks: By name, functions that return what they found, or raise.
        show: Whether to print the table.
    """
    made: list[Check] = []
    for name, check in checks.items():
        if made and made[0].verdict == "failed":
            made.append(Check(name, "skipped", f"the check {made[0].name!r} failed"))
        else:
            made.append(_made(name, check))
    found = Report(subject, tuple(made))
    if show:
        print(found)
    return found


def _made(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, "passed", check())
    except SkippedCheckError as skipped:
        return Check(name, "skipped", str(skipped))
    except (FailedCheckError, D3GDError) as failed:
        return Check(name, "failed", str(failed))
    except Exception as error:  # the user's code may raise anything, and the other checks are still useful
        return Check(name, "failed", f"{type(error).__name__}: {error}")


def require(fact: bool, otherwise: str) -> None:
    """Fail a check unless a fact holds."""
    if not fact:
        raise FailedCheckError(otherwise)
