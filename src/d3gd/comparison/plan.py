"""The plan of a comparison: the required runs, those that already exist, and the result."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from d3gd import __version__
from d3gd.algorithms.base import Algorithm, require_admissible
from d3gd.algorithms.identity import Identity, describe, identify
from d3gd.comparison.methods import Maker
from d3gd.comparison.result import Comparison
from d3gd.comparison.runs import Piece, Run, place, read, recorded
from d3gd.comparison.scenario import Budget, Case, Scenario
from d3gd.comparison.summary import Row, ranked, row_of, target_of, with_costs
from d3gd.comparison.tuning import Grid, Key, Tuned, tune
from d3gd.config.schema import unknown
from d3gd.digest import digest
from d3gd.errors import D3GDError, ProblemError, RecordError
from d3gd.problems import Problem
from d3gd.runs import files, sealed
from d3gd.runs.outputs import claim
from d3gd.runs.trials import in_one_line, run_missing, stored

_STATIONARITY = ("stationarity", "stationarity_at_mean")
_RECORDS, _TUNING_RECORDS = 60, 10  # records per run: metrics cost more than iterations


@dataclass(frozen=True)
class Plan:
    """The settings of a comparison.

    Attributes:
        scenario: The network and problem of each seed.
        methods: Functions of the step size, by name.
        budget: The budget of every run.
        metric: The ranking metric; None for stationarity.
        target: The level whose cost is reported; None for the median of the methods' final values.
        seeds: The reported seeds.
        tuning_seeds: The seeds on which steps are tuned.
        grid: The step sizes.
        jobs: Number of parallel runs.
        backend: Where they take place; None for processes of this machine.
        progress: Whether to show progress; None: only on a terminal.
    """

    scenario: Scenario
    methods: Mapping[str, Maker]
    budget: Budget
    metric: str | None
    target: float | None
    seeds: tuple[int, ...]
    tuning_seeds: tuple[int, ...]
    grid: Grid
    jobs: int
    backend: str | None
    progress: bool | None

    def compare(self, out: Path) -> Comparison:
        """Run what ``out`` does not yet hold, and compare."""
        metric, tuned_by = self._metrics
        _require_same(claim(out, "comparison", self.settings), self.settings, out)
        needs: dict[str, str] = {}
        bias = {}
        rows: list[Row] = []
        for name, make in self.methods.items():
            refusal = self._refusal(name, make, needs)
            rows += [refusal] if refusal else []
            bias[name] = [] if refusal else self._bias(make(self.grid.start[0]))
        able = [name for name in self.methods if name not in {row.method for row in rows}]
        self._say_what_is_run_again(able, out)
        tuned = self._tuned(able, out, tuned_by)
        _require_any(tuned)
        keys = [
            (name, found.step, seed)
            for name, found in tuned.items()
            if not (found.failure or found.diverged)
            for seed in self.seeds
        ]
        runs: dict[str, list[Run]] = {name: [] for name in self.methods}
        for (name, _, _), run in self._made(keys, "Runs", out, _RECORDS).items():
            runs[name].append(run)
        for name, found in tuned.items():
            failed = next((run.message for run in runs[name] if run.status == "failed"), found.failure)
            if failed or found.diverged:
                rows.append(_lost(name, needs[name], found._replace(failure=failed)))
            else:
                edge = ["the best step is at the edge of the grid"] if found.at_the_edge else []
                rows.append(row_of(name, needs[name], runs[name], metric, "; ".join([*bias[name], *edge])))
        target = target_of(rows) if self.target is None else self.target
        return Comparison(
            title=self.scenario.title,
            rows=tuple(with_costs(ranked(rows), runs, metric, target)),
            metric=metric,
            tuned_by=tuned_by,
            budget=self.budget,
            target=target,
            target_text="half of the ranked methods end at or below it." if self.target is None else "as requested.",
            grid_text=self._grid_text,
            seeds=self.seeds,
            tuning_seeds=self.tuning_seeds,
            jobs=self.jobs,
            notes=tuple(self._notes),
            versions=files.versions(),
            runs={name: tuple(found) for name, found in runs.items() if found},
        )

    @cached_property
    def cases(self) -> dict[int, str]:
        """The fingerprints of the cases of all seeds, after a check that their parts match."""
        found = {}
        for seed in (*self.seeds, *self.tuning_seeds):
            case = self.first if seed == self.seeds[0] else self.scenario.case(seed)
            _require_fitting(case)
            self.budget.most(case)
            found[seed] = case.fingerprint()
        return found

    @cached_property
    def first(self) -> Case:
        """The case of the first seed."""
        return self.scenario.case(self.seeds[0])

    @property
    def settings(self) -> dict[str, Any]:
        """What identifies a comparison; methods, steps and seeds may be added to it."""
        return {"comparison": self.scenario.title, "drawn": self.cases[self.seeds[0]], "budget": asdict(self.budget)}

    @property
    def _metrics(self) -> tuple[str, str]:
        """The metrics for ranking and for tuning: disagreement would select the smallest step, which barely moves."""
        known = list(recorded(self.first.problem, self.first.graph.n))
        usual = next(name for name in _STATIONARITY if name in known)
        metric = usual if self.metric is None else self.metric
        if metric == "error" and metric not in known:
            raise ProblemError("this problem has no test data, so no 'error'; choose another metric")
        if metric not in known:
            raise unknown("metric", metric, known)
        return metric, usual if metric == "disagreement" else metric

    def _refusal(self, name: str, make: Maker, needs: dict[str, str]) -> Row | None:
        """Return the row of a method that cannot be built or cannot run on the network; store the needs of others."""
        try:
            algorithm = make(self.grid.start[0])
            needs[name] = algorithm.needs
        except Exception as error:  # a user's method may raise anything
            return Row(name, "", "failed", in_one_line(error))
        try:
            require_admissible(algorithm, self.first.graph, self.first.weights)
        except D3GDError as error:
            short = "needs undirected links" if not self.first.graph.is_undirected else "needs symmetric weights"
            return Row(name, needs[name], "refused", short if needs[name] == "undirected links" else str(error))
        return None

    def _bias(self, algorithm: Algorithm[Any]) -> list[str]:
        """Return a note about the conditions that a method does not survive, if any."""
        conditions = self.first.conditions
        fatal = [] if conditions is None else [h for h in conditions.hardships if h not in algorithm.survives]
        return [f"biased by {' and '.join(fatal)}"] if fatal else []

    def _tuned(self, able: Sequence[str], out: Path, metric: str) -> dict[str, Tuned]:
        def run(keys: Sequence[Key], what: str) -> dict[Key, Run]:
            return self._made(keys, what, out, _TUNING_RECORDS)

        return tune(able, run, seeds=self.tuning_seeds, grid=self.grid, metric=metric)

    def _made(self, keys: Sequence[Key], what: str, out: Path, along: int) -> dict[Key, Run]:
        """Run what is missing, and return all runs."""
        judged = tuple(dict.fromkeys((*self._metrics, "disagreement")))
        wanted: dict[Path, tuple[Piece, str]] = {}
        paths: dict[Key, Path] = {}
        for name, step, seed in keys:
            algorithm = self.methods[name](step)
            piece = Piece(name, step, seed, algorithm, self.scenario, self.budget, judged, along)
            path = paths[name, step, seed] = place(out, name) / f"step-{step:g}-seed-{seed}.json"
            files.make_folder(path.parent)
            settings = [name, step, seed, self.cases[seed], asdict(self.budget), judged, along, describe(algorithm)]
            codes = [self._identity(algorithm), self._problem]
            known = not any(code.unknown for code in codes)
            wanted[path] = piece, digest(*settings, __version__, codes) if known else ""
        kept = {path: _kept(path, key) for path, (_, key) in wanted.items() if key}
        there = {path: content for path, content in kept.items() if content is not None}
        how: dict[str, Any] = {"jobs": self.jobs, "backend": self.backend, "progress": self.progress, "what": what}
        found = run_missing(wanted, _run, there=there, **how)
        return {key: read(found[path], self.budget) for key, path in paths.items()}

    def _identity(self, algorithm: Algorithm[Any]) -> Identity:
        """Return the identity of a method, including its code: methods under development change often."""
        kind = type(algorithm)
        if kind not in self._kinds:
            self._kinds[kind] = identify(kind)
        return identify(algorithm, {kind: self._kinds[kind]})

    @cached_property
    def _kinds(self) -> dict[type, Identity]:
        """The identities of the methods' classes, computed once and not for every step, since they may be large."""
        return {}

    @cached_property
    def _problem(self) -> Identity:
        """The identity of the problem's code; the data of each seed have their own fingerprints."""
        problem = self.first.problem
        return identify(type(problem) if isinstance(problem, Problem) else problem)

    def _say_what_is_run_again(self, able: Sequence[str], out: Path) -> None:
        """Warn about methods whose stored runs cannot be used, since their code may have changed."""
        kept = [name for name in able if place(out, name).exists()]
        found = {f"method {name!r}": self._identity(self.methods[name](self.grid.start[0])) for name in kept}
        found |= {"every method": Identity(self._problem.digest, self._problem.unknown if kept else ())}
        for what, identity in found.items():
            if identity.unknown:
                warnings.warn(
                    f"{what} is run again: it is unknown whether {identity.unknown[0]} has changed; give its class a "
                    "method fingerprint() that returns a text, or pass numbers instead",
                    stacklevel=2,
                )

    @property
    def _grid_text(self) -> str:
        tried = ", ".join(f"{step:g}" for step in self.grid.start)
        grows = len(self.grid.steps) > len(self.grid.start)
        return f"Steps: {tried}" + ("; further ones if the best was at an end." if grows else ".")

    @property
    def _notes(self) -> list[str]:
        if len(set(self.cases.values())) > 1:
            return []
        return [
            "Every seed draws the same network, data and noise here, so intervals show no spread: omit the seed of the "
            "graph or the problem, or give a function of the seed."
        ]


def _require_same(there: Mapping[str, Any], settings: Mapping[str, Any], out: Path) -> None:
    """Raise an error if a folder holds another comparison."""
    names = {"comparison": "network or problem", "drawn": "network, data or first seed", "budget": "budget"}
    for name, words in names.items():
        if there[name] != settings[name]:
            raise RecordError(
                f"{out} holds a comparison with another {words}; choose another --out, or repeat that one"
            )


def _require_fitting(case: Case) -> None:
    case.graph.require_strongly_connected()
    if case.conditions is not None:
        case.conditions.require_fit(case.graph)
    if case.problem.agents != case.graph.n:
        raise ProblemError(
            f"the problem has {case.problem.agents} agents but the graph has {case.graph.n}; make both the same size"
        )


def _require_any(tuned: Mapping[str, Tuned]) -> None:
    """Raise an error if every method failed in the same way, which is then not due to the methods."""
    failures = {found.failure for found in tuned.values()}
    if len(tuned) > 1 and len(failures) == 1 and failures != {""}:
        raise D3GDError(f"every method failed: {failures.pop()}")


def _lost(name: str, needs: str, found: Tuned) -> Row:
    """Return the row of a method that raised an error, or diverged at every step."""
    if found.failure:
        return Row(name, needs, "failed", found.failure)
    return Row(name, needs, "diverged", "at every step of the grid", step=found.step)


def _run(task: tuple[Piece, str]) -> dict[str, Any]:
    piece, key = task
    return piece.run(key)


def _kept(path: Path, key: str) -> dict[str, Any] | None:
    """Return the stored run; None if it must be run again, since the method, the version or the file has changed."""
    try:
        found = stored(path)
    except sealed.OtherFormatError:
        return None
    return found if found is not None and found.get("key") == key else None
