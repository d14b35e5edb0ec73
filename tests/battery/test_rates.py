"""On quadratics every method converges at the rate of its iteration matrix."""

from dataclasses import replace

import numpy as np
import pytest

import d3gd
from tests.battery.cases import GRAPHS, admissible, initial_weights, name_of
from tests.battery.theory import RATES, factor
from tests.helpers.methods import every_method
from tests.helpers.stepping import states

# While weights move, or Perron weights are averaged over time, there is no factor.
# Rounding to bytes is not linear, nor are the scales of Adam.
MOVING = ("ACGT", "CHOCO", "D3GD", "DiDGD tracked averaged", "PerronD3GD planned", "QGAdam")
METHODS = {name: algorithm for name, algorithm in every_method(0.25).items() if not name.startswith(MOVING)}
# Rounds of mixing have the rates of another network: see test_rounds.
METHODS = {name: algorithm for name, algorithm in METHODS.items() if not name.endswith("rounds=2")}
del METHODS["PULMDGD"]  # its cycles grow; the variant whose cycles do not is here
# At other settings, modes lie too close to be told apart.
METHODS["KGT"] = replace(METHODS["KGT"], step_size=0.05)
METHODS["MomentumTracking"] = replace(METHODS["MomentumTracking"], momentum=0.5)
METHODS["FRSD"] = replace(METHODS["FRSD"], gain=0.3)
METHODS |= {
    name: replace(one, step_size=0.4 if one.momentum else 0.18)
    for name, one in METHODS.items()
    if name.startswith("PerronD3GD") and one.correct
}
ORDER = 8  # modes of convergence that are told apart


def measured_factor(path):
    """The largest root of the linear recurrence that the distances from the end follow, once they are small."""
    away = np.array(path).reshape(len(path), -1) - np.ravel(path[-1])
    size = np.linalg.norm(away, axis=1)
    first, last = (np.flatnonzero(size > level)[-1] for level in (1e-5, 1e-10))
    away, size = away[first:last], size[first:last]
    steps = np.arange(len(away))
    # Against the mean decline, the modes that matter neither grow nor shrink, and roots of mere noise lie inside.
    decline = np.exp(np.polyfit(steps, np.log(size), 1)[0])
    even = away / size[0] / decline ** steps[:, None]
    past = np.column_stack([even[j : len(even) - ORDER + j].ravel() for j in range(ORDER)])
    recurrence = np.linalg.lstsq(past, even[ORDER:].ravel(), rcond=1e-6)[0]
    return decline * np.abs(np.roots([1, *-recurrence[::-1]])).max()


CASES = [
    pytest.param(method, graph, id=f"{method}-{graph}")
    for method, algorithm in METHODS.items()
    for graph in ("erdos-renyi", "undirected erdos-renyi")
    if graph in admissible(algorithm)
]


def test_every_method_has_a_factor():
    missing = {name_of(algorithm) for algorithm in METHODS.values()} - set(RATES)
    assert not missing, f"tests/battery/theory.py does not know how fast {missing} converge; add their matrix to RATES"


@pytest.mark.parametrize(("method", "name"), CASES)
def test_it_converges_by_the_factor_of_its_matrix(method, name, monkeypatch):
    monkeypatch.setattr("d3gd.rules.gain._LASTS", 1e-9)  # a gain that falls slowly has no factor; its last one has
    algorithm, graph = METHODS[method], GRAPHS[name]
    rng = np.random.default_rng(0)
    # One number per model, so that modes lie apart; agents curve differently, so that the network matters.
    problem = d3gd.problems.Quadratic(rng.uniform(0.2, 1.0, (graph.n, 1, 1)), rng.normal(size=(graph.n, 1)))
    once = graph.n if name_of(algorithm) == "PULMDGD" else 1  # iterations in which models move once
    most = 2500 if method.startswith("PerronD3GD fixed tracked") else 1200  # a small gain takes long
    path = states(algorithm, graph, d3gd.weights.metropolis(graph), problem, most * once, x0=np.ones((graph.n, 1)))
    step = RATES[name_of(algorithm)](algorithm, initial_weights(algorithm, graph, path[0]))
    models = [algorithm.point(s) for s in path[::once]]
    assert abs(measured_factor(models) - factor(step, problem)) < 5e-5
