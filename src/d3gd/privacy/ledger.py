"""A site's own record of the privacy that it has spent, which outlives its process."""

import json
import math
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from d3gd import reading
from d3gd.arrays import Floats
from d3gd.errors import SettingsError
from d3gd.privacy.accountant import epsilon
from d3gd.privacy.mechanism import Private
from d3gd.privacy.settings import Privacy
from d3gd.runs import files

_FORMAT = 1
_SECRET = 32  # bytes
_AHEAD = 64  # evaluations that are written down before they are made: a crash then counts too many, never too few


class Ledger:
    """The evaluations of the gradient that a site has made on its data, in all its runs, and the key of its noise.

    A run that begins draws a new key from the operating system; one that resumes keeps it, so that what it computes
    again is sent with the same noise.

    Args:
        path: The file; only its owner may read it.
        privacy: The settings.
        resume: Whether the run continues an earlier one.
    """

    def __init__(self, path: Path, privacy: Privacy, *, resume: bool) -> None:
        self._path, self._privacy = path, privacy
        secret, self._spent = _read(path) if path.exists() else (b"", {})
        self.secret = secret if resume and secret else os.urandom(_SECRET)
        self._now = (privacy.noise, 1.0)
        self._written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._written:  # a run that never began must not replace the key of one that may be resumed
            self._write(0)

    def private(self, problem: Any) -> "Counted":
        """Return the private gradients of the site's objective."""
        made = Counted(problem, self._privacy, self)
        self._now = (self._privacy.noise, made.sample)
        self._spent.setdefault(self._now, 0)
        return made

    def count(self) -> None:
        """Note an evaluation that is about to be made."""
        self._spent[self._now] += 1
        if self._spent[self._now] > self._written:
            self._write(_AHEAD)

    def epsilon(self) -> float:
        """Return the epsilon of all evaluations so far, at the delta of this run."""
        spent = [(noise, sample, steps) for (noise, sample), steps in self._spent.items()]
        return epsilon(spent, self._privacy.delta)

    def _write(self, ahead: int) -> None:
        spent = dict(self._spent)
        if self._now in spent:
            spent[self._now] += ahead
            self._written = spent[self._now]
        rows = [[noise, sample, steps] for (noise, sample), steps in spent.items()]
        content = {"format": _FORMAT, "secret": self.secret.hex(), "spent": rows}
        text = json.dumps(content, indent=2) + "\n"
        with files.replacing(self._path, private=True) as file:
            file.write(text.encode())


class Counted(Private):
    """Private gradients whose evaluations are written down.

    Args:
        problem: The site's objective.
        privacy: The settings.
        ledger: Where they are written.
    """

    def __init__(self, problem: Any, privacy: Privacy, ledger: Ledger) -> None:
        super().__init__(problem, privacy, ledger.secret)
        self._ledger = ledger

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """Count, then evaluate."""
        self._ledger.count()
        return super().gradients(x, k)


def _read(path: Path) -> tuple[bytes, dict[tuple[float, float], int]]:
    wanted = "the record of privacy that d3gd wrote; restore it from a backup"
    try:
        held = json.loads(reading.text(path, wanted, error=SettingsError))
        secret = bytes.fromhex(held["secret"])
        spent = {(float(noise), float(sample)): int(steps) for noise, sample, steps in held["spent"]}
        rows = [(noise, sample, steps) for (noise, sample), steps in spent.items()]
        sound = all(0 < noise < math.inf and 0 < sample <= 1 and steps >= 0 for noise, sample, steps in rows)
        if held["format"] != _FORMAT or len(secret) != _SECRET or len(rows) != len(held["spent"]) or not sound:
            raise ValueError("its numbers cannot be")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SettingsError(
            f"{path} is no record of privacy ({error}); restore it from a backup, since it says what has been spent"
        ) from None
    return secret, spent
