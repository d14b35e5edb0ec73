"""What the study compares: methods, networks, data sets and hardships, by their names in its tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from d3gd import data, graphs, problems, weights
from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.centralized import Centralized
from d3gd.algorithms.d3gd import D3GD
from d3gd.algorithms.didgd import DiDGD
from d3gd.algorithms.frost import FROST
from d3gd.algorithms.frsd import FRSD
from d3gd.algorithms.perron import PerronD3GD
from d3gd.algorithms.pulm import PULMDGD
from d3gd.algorithms.push_diging import PushDIGing
from d3gd.algorithms.push_pull import PushPull
from d3gd.algorithms.rfast import RFAST
from d3gd.algorithms.sgp import SGP
from d3gd.arrays import CSR
from d3gd.conditions import Conditions
from d3gd.graphs import Digraph
from d3gd.problems import Problem
from d3gd.schedules import Decay
from d3gd.topologies import fast_mixing

BASELINE, CONTROL, DEFAULT, PLANNED = "Di-DGD", "Di-DGD, exact pi", "PerronD3GD", "PerronD3GD, planned"
AVERAGED, DECAYING = "Di-DGD, averaged", "Di-DGD, decaying"
PAPER, FROST_, PUSH_PULL, CENTRAL = "D3GD (paper)", "FROST", "Push-Pull", "centralized"
SINGLE = ", float32"


@dataclass(frozen=True)
class Method:
    """A method as a function of its step size, with its initial weights (Metropolis by default) and its precision."""

    make: Callable[[float], Algorithm[Any]]
    weights: Callable[[Digraph], CSR] | None = None
    dtype: Literal["float64", "float32"] = "float64"


def _decaying(step: float) -> Decay:
    """Return a step that falls like one over the square root of the iteration: it removes the bias in the long run."""
    return Decay(step, power=0.5, over=100)


_PAPERS = {
    BASELINE: Method(lambda step: DiDGD(step_size=step)),
    CONTROL: Method(lambda step: DiDGD(step_size=step, perron="known")),
    DECAYING: Method(lambda step: DiDGD(step_size=_decaying(step))),
    AVERAGED: Method(lambda step: DiDGD(step_size=step, averaged=True)),
    f"{AVERAGED}, decaying": Method(lambda step: DiDGD(step_size=_decaying(step), averaged=True)),
    PAPER: Method(lambda step: D3GD(step_size=step, refine_step=1.0, rule="decentralized")),
    DEFAULT: Method(lambda step: PerronD3GD(step_size=step)),
    PLANNED: Method(lambda step: PerronD3GD(step_size=step, rule="planned")),
    FROST_: Method(lambda step: FROST(step_size=step)),
    PUSH_PULL: Method(lambda step: PushPull(step_size=step)),
    "Push-DIGing": Method(lambda step: PushDIGing(step_size=step)),
    "FRSD": Method(lambda step: FRSD(step_size=step)),
    "SGP": Method(lambda step: SGP(step_size=step)),
    "R-FAST": Method(lambda step: RFAST(step_size=step)),
    "PULM-DGD": Method(lambda step: PULMDGD(step_size=step)),
    CENTRAL: Method(lambda step: Centralized(step_size=step)),
}
# The correction and none, each on four kinds of weights; two of the eight are PerronD3GD, with its rules.
_WEIGHTS = {
    "correction, Metropolis": Method(lambda step: PerronD3GD(step_size=step, rule="fixed")),
    "correction, balanced": Method(lambda step: PerronD3GD(step_size=step, rule="fixed"), weights.balanced),
    "no correction, Metropolis": Method(lambda step: PerronD3GD(step_size=step, rule="fixed", correct=False)),
    "no correction, balanced": Method(
        lambda step: PerronD3GD(step_size=step, rule="fixed", correct=False), weights.balanced
    ),
    "no correction, planned for mixing": Method(lambda step: PerronD3GD(step_size=step, correct=False)),
    "no correction, planned from data": Method(lambda step: PerronD3GD(step_size=step, rule="planned", correct=False)),
    "Push-Pull, planned for mixing": Method(lambda step: PushPull(step_size=step), fast_mixing),
}
_SINGLE = {
    name + SINGLE: Method(_PAPERS[name].make, dtype="float32")
    for name in (DEFAULT, FROST_, PUSH_PULL, "Push-DIGing", "FRSD", "R-FAST", CENTRAL)
}
METHODS: Mapping[str, Method] = {**_PAPERS, **_WEIGHTS, **_SINGLE}

FIELD = (BASELINE, CONTROL, PAPER, DEFAULT, PLANNED, FROST_, PUSH_PULL, "FRSD", CENTRAL)
WEIGHTS = tuple(_WEIGHTS)
SINGLES = tuple(_SINGLE)
SURVIVORS = (AVERAGED, f"{AVERAGED}, decaying", DEFAULT, "R-FAST", "PULM-DGD")
VICTIMS = (BASELINE, FROST_, PUSH_PULL)  # of hardships


def bridge(n: int) -> Digraph:
    """Return two cliques of n/2 agents, joined by one link each way."""
    half = n // 2
    groups = [(i, j) for first in (0, half) for i in range(first, first + half) for j in range(first, first + half)]
    return Digraph.from_edges(n, [*groups, (half - 1, half), (n - 1, 0)])


_HUB = [pair for i in range(1, 6) for pair in ((0, i), (i, 0))] + [(1, 2), (2, 1), (2, 3), (3, 2)]
_CHORDS = [*((i, (i + 1) % 6) for i in range(6)), (0, 3), (0, 2), (4, 1)]
NETWORKS: Mapping[str, Callable[[int], Digraph]] = {
    "Erdos-Renyi 0.6 (20)": lambda seed: graphs.erdos_renyi(20, 0.6, seed=seed),
    "Erdos-Renyi 0.2 (20)": lambda seed: graphs.erdos_renyi(20, 0.2, seed=seed),
    "one-way ring (10)": lambda seed: graphs.ring(10),
    "exponential (32)": lambda seed: graphs.exponential(32),
    "Erdos-Renyi 0.1 (50)": lambda seed: graphs.erdos_renyi(50, 0.1, seed=seed),
    "torus (16)": lambda seed: graphs.grid(4, 4, torus=True),
    "grid (20)": lambda seed: graphs.grid(4, 5),
    "star (12)": lambda seed: graphs.star(12),
    "geometric (24)": lambda seed: graphs.random_geometric(24, 0.4, seed=seed),
    "regular, degree 3 (30)": lambda seed: graphs.regular(30, 3, seed=seed),
    "bridge (16)": lambda seed: bridge(16),
    "two-way path (20)": lambda seed: graphs.grid(1, 20),
    "star (30)": lambda seed: graphs.star(30),
    "Erdos-Renyi 0.05 (100)": lambda seed: graphs.erdos_renyi(100, 0.05, seed=seed),
    "exponential (100)": lambda seed: graphs.exponential(100),
    "geometric (300)": lambda seed: graphs.random_geometric(300, 0.12, seed=seed),
    "regular, degree 4 (300)": lambda seed: graphs.regular(300, 4, seed=seed),
    "hub (6)": lambda seed: Digraph.from_edges(6, _HUB),
    "ring with chords (6)": lambda seed: Digraph.from_edges(6, _CHORDS),
    "Erdos-Renyi 0.4 (6)": lambda seed: graphs.erdos_renyi(6, 0.4, seed=seed),
    "exponential (16)": lambda seed: graphs.exponential(16),
    "Erdos-Renyi 0.3 (20)": lambda seed: graphs.erdos_renyi(20, 0.3, seed=seed),
}


def network(name: str, seed: int) -> Digraph:
    """Draw a network by its name."""
    return NETWORKS[name](seed)


def _cancer(agents: int, seed: int, batch: int | None) -> Problem:
    X, y = data.breast_cancer()
    return problems.label_skewed_classification(X, y, agents=agents, seed=seed, batch=batch, test_fraction=0)


def _wine(agents: int, seed: int, batch: int | None) -> Problem:
    X, y = data.wine()
    return problems.label_skewed_classification(X, y, agents=agents, seed=seed, batch=batch, test_fraction=0)


DATA: Mapping[str, Callable[[int, int, int | None], Problem]] = {
    "digits": lambda n, seed, batch: problems.digits_classification(agents=n, seed=seed, batch=batch, test_fraction=0),
    "cancer": _cancer,
    "wine": _wine,
    "gaussian": lambda n, seed, batch: problems.mixture_classification(
        agents=n, seed=seed, batch=batch, test_samples=0
    ),
    "sigmoid": lambda n, seed, batch: problems.sigmoid_classification(agents=n, seed=seed, batch=batch, test_samples=0),
    "quadratic": lambda n, seed, batch: problems.quadratic(agents=n, dim=5, seed=seed),
}

IDEAL, ALL = "none", "all at once"
HARDSHIPS: Mapping[str, Conditions | None] = {
    IDEAL: None,
    "loss 0.3": Conditions(loss=0.3, biased=True),
    "links up 0.7": Conditions(links=0.7, biased=True),
    "delay 3": Conditions(delay=3, biased=True),
    "pauses 0.05/0.2": Conditions(pause=0.05, back=0.2, biased=True),
    ALL: Conditions(loss=0.3, links=0.7, delay=3, pause=0.05, back=0.2, biased=True),
}
