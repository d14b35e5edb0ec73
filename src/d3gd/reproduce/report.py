"""The paper's figures and a table of its claims, in one call."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from d3gd.algorithms.identity import describe
from d3gd.errors import RecordError, SettingsError
from d3gd.plots import write_figure
from d3gd.reproduce import figure1, figure2, readings
from d3gd.reproduce.claims import Claim
from d3gd.reproduce.trial import ALGORITHMS, CURVES, ITERATIONS, Trial
from d3gd.runs import files, outputs
from d3gd.runs.progress import progress_bar
from d3gd.runs.trials import run_all

Which: TypeAlias = Literal["fig1", "fig2", "all"]

_TRIALS: Mapping[str, Callable[[int], Trial]] = {
    "fig1": figure1.trial,
    **{reading: partial(readings.trial, reading) for reading in readings.READINGS},
    "fig2": figure2.trial,
}
_COLOURS = {"reproduced": "green", "partly": "yellow", "not reproduced": "red"}
_NOTES = (
    "Ours: median [quartiles] over seeds 0, 1, ...; graph and data are drawn from the seed. "
    "Speed-up: 1 - k / (T/2), where k is the iteration from which a curve stays at or below Di-DGD's level at T/2 "
    "(never within T: -100 %). Reduction: 1 - value at T / Di-DGD's value at T. "
    "Several lines: reproduced if all are, not reproduced if none is even partly, else partly."
)


def reproduce(
    which: Which, *, seeds: int = 10, out: Path, jobs: int | None = None, progress: bool | None = None
) -> list[Claim]:
    """Repeat the paper's experiments and test its claims.

    Writes to ``out``: both figures as .png and .pdf, ``fig1_curves.csv`` and ``fig2_weights.csv``, ``settings.json``
    and ``claims.json``; prints the table and the paths of the files.

    Args:
        which: ``"fig1"``, ``"fig2"`` or ``"all"``.
        seeds: Number of seeds; they are 0, 1, ..., not selected.
        out: The folder to write to.
        jobs: Number of processes; by default one per core.
        progress: Show progress, as a bar on a terminal and in lines elsewhere; by default only on a terminal.

    Returns:
        The claims with their measurements and verdicts.
    """
    if which not in get_args(Which):
        raise SettingsError(f"{which!r} is not a figure of the paper; choose fig1, fig2 or all")
    for name, value in (("seeds", seeds), ("jobs", 1 if jobs is None else jobs)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise SettingsError(f"{name} = {value!r}: it must be a whole number of at least 1")
    settings = {
        "which": which,
        "seeds": list(range(seeds)),
        "iterations": ITERATIONS,
        "algorithms": {name: describe(algorithm) for name, algorithm in ALGORITHMS.items()},
        "versions": files.versions(),
    }
    folder = Path(out)
    before = outputs.claim(folder, "reproduction", settings)["which"]  # first, so that an unusable folder costs no work
    if which not in ("all", before):
        raise RecordError(f"{folder} holds other figures, whose claims would be lost; choose another folder (--out)")
    files.write_json(folder / "settings.json", settings)
    wanted = {"all": list(_TRIALS), "fig1": ["fig1", *readings.READINGS], "fig2": ["fig2"]}[which]
    trials = _run_trials(wanted, seeds, jobs, progress)
    otherwise = {name: trials.pop(name) for name in readings.READINGS if name in trials}
    found: list[Claim] = []
    written: list[str] = []
    with progress_bar(progress, len(trials), "Figures") as show:
        show(0, "")
        for count, (name, rows) in enumerate(trials.items(), start=1):
            figure, table, write = _FILES[name]
            drawn = figure.draw(rows)
            for suffix in (".png", ".pdf"):
                write_figure(drawn, folder / f"{name}{suffix}")
            write(folder / table, rows)
            found += figure.claims(rows)
            written += [f"{name}.png", f"{name}.pdf", table]
            show(count, name)
    found += readings.claims(otherwise)
    files.write_json(
        folder / "claims.json", {**settings, "notes": _NOTES, "claims": [claim.as_dict() for claim in found]}
    )
    print_claims(found, seeds)
    for name in (*written, "claims.json", "settings.json"):
        print(f"wrote {folder / name}")
    return found


def print_claims(found: Sequence[Claim], seeds: int) -> None:
    """Print the claims as a table."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=150)
    table = Table(title=f"The paper's claims, measured over {seeds} seeds", caption=Text(_NOTES), show_lines=True)
    table.add_column("claim, what we measure and how it is judged", ratio=5)
    table.add_column("in the paper", ratio=2)
    table.add_column("ours", ratio=4)
    table.add_column("verdict", no_wrap=True)
    for claim in found:
        said = Text.assemble(claim.claim, (f"\n{claim.measure}; {claim.rule}", "dim"))
        place = Text.assemble(claim.paper, (f"\n{claim.where}", "dim"))
        ours = Text("\n").join(Text.assemble(str(m), (f"  {m.label}", "dim")) for m in claim.ours)
        table.add_row(said, place, ours, Text(claim.verdict, style=_COLOURS[claim.verdict]))
    console.print(table)


def _run_trials(wanted: Sequence[str], seeds: int, jobs: int | None, progress: bool | None) -> dict[str, list[Trial]]:
    """Run every figure's trial of every seed, and return them in the order of the seeds."""
    tasks = {f"{name}, seed {seed}": (name, seed) for name in wanted for seed in range(seeds)}
    done: dict[str, list[Trial]] = {name: [] for name in wanted}
    for key, trial in run_all(tasks, _trial, jobs=jobs, progress=progress, what="Trials"):
        done[tasks[key][0]].append(trial)
    return {name: sorted(rows, key=lambda trial: trial.seed) for name, rows in done.items()}


def _trial(task: tuple[str, int]) -> Trial:
    name, seed = task
    return _TRIALS[name](seed)


def _write_curves(path: Path, trials: Sequence[Trial]) -> None:
    rows = [
        [trial.seed, name, k, *values]
        for trial in trials
        for name, curves in trial.curves.items()
        for k, *values in zip(trial.iterations.tolist(), *(curves[metric].tolist() for metric in CURVES), strict=True)
    ]
    _write_csv(path, ["seed", "algorithm", "iteration", *CURVES], rows)


def _write_weights(path: Path, trials: Sequence[Trial]) -> None:
    rows = [
        [trial.seed, name, edge[0], edge[1], initial, weight]
        for trial in trials
        for name, final in trial.final.items()
        for edge, initial, weight in zip(figure2.names(trial), trial.initial.tolist(), final.tolist(), strict=True)
    ]
    _write_csv(path, ["seed", "algorithm", "source", "target", "initial", "final"], rows)


def _write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    files.write_atomically(path, text.getvalue().encode())


# The table of each figure, and the function that writes it.
_FILES: Mapping[str, tuple[Any, str, Callable[[Path, Sequence[Trial]], None]]] = {
    "fig1": (figure1, "fig1_curves.csv", _write_curves),
    "fig2": (figure2, "fig2_weights.csv", _write_weights),
}
