"""The page of a sweep: its combinations of settings, best first, and their curves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from d3gd.plots import quartiles_of
from d3gd.report.payload import numbers, thinned
from d3gd.report.table import Axis, Cell, number, write_table, written
from d3gd.result import Result
from d3gd.runs import files
from d3gd.sweeps.points import text_of

if TYPE_CHECKING:
    from d3gd.sweeps.result import Group, Sweep

_CURVES = 60  # combinations up to which there are curves, the best ones
_POINTS = 300  # of a curve
_AXES = {"iterations": "iteration", "bytes": "bytes sent", "time": "time (s), at the mean pace"}


def write(sweep: "Sweep", path: str | Path) -> None:
    """Write the page of a sweep."""
    several = f"over {len(sweep.seeds)} seeds" if len(sweep.seeds) > 1 else f"seed {sweep.seeds[0]}"
    failed = f", {len(sweep.failures)} of {len(sweep.rows)} runs failed" if sweep.failures else ""
    best = sweep.best
    write_table(
        path,
        sweep.title,
        ["rank", *sweep.settings, f"{sweep.metric}, median", "lower quartile", "upper quartile", "note"],
        [("", _cells(rank, group)) for rank, group in enumerate(sweep.ranked, start=1)],
        headline=[f"{len(sweep.groups)} combinations, {several}{failed}. Best: {short(best)}."],
        axes={name: Axis(label, sweep.metric, label) for name, label in _AXES.items()},
        curves=_curves(sweep),
        without="No combination has a finished run.",
        reading=[
            f"{sweep.metric} is that of the last record. A run that diverged or failed counts as the worst.",
            "Curves are medians over seeds, bands lie between the quartiles.",
            *dict.fromkeys(f"Failed: {row.place.as_posix()}: {row.message}" for row in sweep.failures[:20]),
        ],
        versions=files.versions(),
    )


def _cells(rank: int, group: "Group") -> list[Cell]:
    values = [written(text_of(value)) for value in group.values.values()]
    spread = [number(value) for value in (group.median, group.low, group.high)]
    return [number(rank), *values, *spread, (group.note, group.note)]


def _curves(sweep: "Sweep") -> dict[str, dict[str, Any]]:
    found = {}
    for group in sweep.ranked[:_CURVES]:
        runs = [sweep.result(row) for row in group.rows if row.status not in ("failed", "diverged")]
        known = [run for run in runs if sweep.metric in run.metrics]
        if known:
            found[short(group)] = _against(known, sweep.metric)
    return found


def short(group: "Group") -> str:
    """Return a combination in words, with the last parts of settings' names where these suffice."""
    leaves = [key.rpartition(".")[2] for key in group.values]
    names = leaves if len(set(leaves)) == len(leaves) else list(group.values)
    words = (f"{name}={text_of(value)}" for name, value in zip(names, group.values.values(), strict=True))
    return ", ".join(words) or group.name


def _against(runs: Sequence[Result], metric: str) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for axis in _AXES:
        if axis != "bytes" or all("bytes" in run.metrics for run in runs):
            across, quartiles = quartiles_of(runs, metric, axis)
            some = thinned(len(across), _POINTS)
            low, median, high = (numbers(each[some]) for each in quartiles)
            found[axis] = {"x": numbers(across[some]), "y": median, "low": low, "high": high}
    return found
