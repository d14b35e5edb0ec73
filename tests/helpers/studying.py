"""Helpers for tests of the study: trials and runs with known results."""

from dataclasses import asdict

import numpy as np

from studies.plan import ADAPT, BASELINE, CONTROL, CORRECTION, DEFAULT, MIXING, PLANNED, Trial

K = np.arange(0, 1001, 50)
RING = Trial("digits", "one-way ring (10)", None, 0)
TORUS = Trial("digits", "torus (16)", 16, 0)
NAMES = (BASELINE, CONTROL, ADAPT, MIXING, CORRECTION, PLANNED, DEFAULT)


def run(method, step=0.1, level=1.0, *, disagreement=None, rate=0.0, sent=1000, status="completed"):
    """A curve that falls exponentially to a level at the end; a diverged one stops half-way."""
    k = K[: 10 if status == "diverged" else None]
    curve = level * np.exp(rate * (1000 - k))
    return {
        "method": method,
        "step_size": step,
        "status": status,
        "iterations": k.tolist(),
        "stationarity": curve.tolist(),
        "disagreement": (curve if disagreement is None else np.full(k.shape, disagreement)).tolist(),
        "bytes": (k * sent).tolist(),
    }


def trial(*runs, at=RING, seed=0):
    return {"trial": {**asdict(at), "seed": seed}, "runs": list(runs)}


def row_of(rows, method):
    (row,) = [row for row in rows if row.method == method]
    return row


def study_of(levels, at=RING, seeds=1):
    return [
        trial(*(run(method, level=level) for method, level in levels.items()), at=at, seed=seed)
        for seed in range(seeds)
    ]
