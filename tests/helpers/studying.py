"""Helpers for tests of the study: parts and trials with known results."""

from dataclasses import asdict

import numpy as np

from studies.plan import Part
from studies.settings import BASELINE, CONTROL, DEFAULT
from studies.summary import rows_of, runs_of

K = np.arange(0, 1001, 50)
RING, TORUS = ("digits", "one-way ring (10)"), ("digits", "torus (16)")


def part(methods=(BASELINE, CONTROL, DEFAULT), *, places=(RING,), steps=(0.1,), seeds=1, batches=(None,), **more):
    """A small part of a study."""
    return Part(places, tuple(methods), steps, seeds, batches, **more)


def result(trial, level, sent=1000):
    """A trial whose curves stay at a level; None for one that diverged half-way."""
    k = K[: 10 if level is None else None]
    curve = np.full(k.shape, np.inf if level is None else level)
    status = "diverged" if level is None else "completed"
    curves = {"iterations": k, "stationarity": curve, "disagreement": curve, "bytes": k * sent}
    return {
        "trial": asdict(trial),
        "dim": 5,
        "status": status,
        **{name: values.tolist() for name, values in curves.items()},
    }


def trials_of(one, level):
    """The trials of a part, at levels given by method, or by a function of the trial."""
    find = level if callable(level) else lambda trial: level.get(trial.method, 1.0)
    return {trial: result(trial, find(trial)) for trial in one.trials}


def rows(one, level):
    """The rows of a part."""
    return rows_of(runs_of(trials_of(one, level), one))


def row_of(found, method):
    (row,) = [row for row in found if row.method == method]
    return row
