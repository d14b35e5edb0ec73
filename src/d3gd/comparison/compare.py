"""A fair comparison of methods on one network, problem and budget.

Every method's step size is tuned on one grid, on separate seeds; then all run on the same networks, data and noise, and
are ranked by their final metric.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.arrays import CSR
from d3gd.comparison.methods import Maker, chosen
from d3gd.comparison.plan import Plan
from d3gd.comparison.result import Comparison, write
from d3gd.comparison.scenario import Budget, FromFile, Given, Scenario
from d3gd.comparison.tuning import QUICK, USUAL, Grid, grid_of
from d3gd.conditions import Conditions
from d3gd.config.experiment import load
from d3gd.errors import SettingsError
from d3gd.graphs import Digraph
from d3gd.validation import as_path, count, flag, is_number, plain, shown

DEFAULT = Path(__file__).parents[1] / "config" / "compare.toml"
TUNING = 10_000  # offset of the tuning seeds from the reported ones
_SEEDS, _TUNING_SEEDS = {True: 3, False: 5}, {True: 2, False: 3}  # True: quick
_QUICK_ITERATIONS = 300


def compare(
    graph: Digraph | Callable[[int], Digraph] | str | Path | None = None,
    problem: Any = None,
    *,
    weights: CSR | Callable[[Digraph], CSR] | None = None,
    conditions: Conditions | None = None,
    methods: Mapping[str, Maker] | None = None,
    only: Sequence[str] | None = None,
    iterations: int | None = None,
    budget_bytes: int | None = None,
    budget_gradients: int | None = None,
    metric: str | None = None,
    target: float | None = None,
    seeds: int | None = None,
    steps: Sequence[float] | None = None,
    quick: bool = False,
    out: str | Path | None = None,
    jobs: int | None = None,
    backend: str | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Compare methods on a network and a problem, each at its best step size.

    Args:
        graph: The network, or a function of the seed that draws it; or a settings file, which also defines the problem,
            weights and conditions. By default, a directed Erdős-Rényi graph and a classification with label skew.
        problem: The objectives, or a function of the seed that draws them.
        weights: The initial weights, or a function of the graph; Metropolis weights by default.
        conditions: Conditions of an unreliable network. Methods that do not survive them are marked as biased.
        methods: User's methods in addition to the library's, each a function of the step size, such as
            ``{"mine": lambda gamma: Mine(step_size=gamma)}``.
        only: Names of the methods to compare, optionally with settings: ``["DiDGD", "PerronD3GD rule=planned",
            "mine"]``; by default all.
        iterations: The budget of every run.
        budget_bytes: The budget in bytes over all links, instead of or in addition to iterations.
        budget_gradients: The budget in gradients per agent, instead of or in addition to iterations: fair to methods
            with several evaluations per iteration.
        metric: The ranking metric: ``"stationarity"`` by default, ``"loss"``, ``"disagreement"`` or test ``"error"``.
        target: The level of the metric whose cost is reported; by default the median of the methods' final values.
        seeds: Number of networks, data sets and noise draws for the medians; 5 by default, 3 if quick.
        steps: Step sizes to choose from; by default a grid of three per decade, extended as needed.
        quick: Fewer seeds and steps, and at most 300 iterations unless they are given.
        out: A folder for tables, curves and all runs. Runs that it already holds are not repeated.
        jobs: Number of parallel runs; by default one per core.
        backend: A back end of joblib, such as ``"dask"`` for a cluster; by default processes of this machine.
        progress: Show progress, as a bar on a terminal and in lines elsewhere; by default only on a terminal.

    Returns:
        The rows, best first. They include methods that diverge at every step, raise an error, or cannot run on the
        network; the others still run.

    Example:
        >>> import d3gd
        >>> found = d3gd.compare(
        ...     d3gd.graphs.ring(5),
        ...     lambda seed: d3gd.problems.quadratic(agents=5, dim=3, seed=seed),
        ...     only=["DiDGD", "PerronD3GD", "DGD"],
        ...     iterations=200,
        ...     seeds=2,
        ...     steps=[0.01, 0.1],
        ...     jobs=1,
        ... )
        >>> [(row.method, row.status) for row in found.rows]
        [('PerronD3GD', 'ranked'), ('DiDGD', 'ranked'), ('DGD', 'refused')]
    """
    from joblib import cpu_count

    quick = flag("quick", quick)
    flag("progress", False if progress is None else progress)
    if not isinstance(metric, str | None):
        raise SettingsError(f"metric = {shown(metric)}: give a name, such as 'loss'")
    folder = None if out is None else as_path("out", out)
    scenario: Scenario
    first, aim = 0, target
    if graph is None or isinstance(graph, str | Path):
        if any(part is not None for part in (problem, weights, conditions)):
            raise SettingsError("a settings file has its own problem, weights and conditions; leave them out")
        experiment = load(DEFAULT if graph is None else graph, optional=("algorithm", "iterations"))
        # Other processes may have another working directory.
        scenario, first = FromFile(replace(experiment, path=experiment.path.resolve())), experiment.seed
        if iterations is None and budget_bytes is None and budget_gradients is None:
            iterations = experiment.settings.get("iterations")
            iterations = iterations if iterations is None or not quick else min(iterations, _QUICK_ITERATIONS)
        if target is None:
            aim = experiment.settings.get("target", {}).get("stationarity" if metric is None else metric)
    elif problem is None:
        raise SettingsError("a graph was given, but no problem; give one too, or a function of the seed that draws it")
    else:
        scenario = Given(graph, problem, weights, conditions)
    seeds = count("seeds", _SEEDS[quick] if seeds is None else seeds, least=1, most=TUNING - 1)
    jobs = count("jobs", cpu_count() if jobs is None else jobs, least=1)
    if aim is not None and not (is_number(aim) and np.isfinite(plain(aim))):
        raise SettingsError(f"target = {shown(aim)}: it must be a finite number, such as 0.01")
    plan = Plan(
        scenario=scenario,
        methods=chosen(only, methods, scenario.case(first).conditions),
        budget=Budget(iterations, budget_bytes, budget_gradients),
        metric=metric,
        target=None if aim is None else float(aim),
        seeds=tuple(range(first, first + seeds)),
        tuning_seeds=tuple(range(first + TUNING, first + TUNING + _TUNING_SEEDS[quick])),
        grid=_grid(steps, quick),
        jobs=jobs,
        backend=backend,
        progress=progress,
    )
    with ExitStack() as stack:
        where = folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        comparison = plan.compare(where)
        if folder is not None:
            write(comparison, folder)
            if isinstance(scenario, FromFile):
                settings = {**scenario.experiment.settings, "seed": first}
                settings |= {} if iterations is None else {"iterations": iterations}
                replace(scenario.experiment, settings=settings).save(folder)
    return comparison


def _grid(steps: Sequence[float] | None, quick: bool) -> Grid:
    return grid_of(steps) if steps is not None else QUICK if quick else USUAL
