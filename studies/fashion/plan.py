"""What the study on Fashion-MNIST trains: data, network, graphs, methods and the grid of step sizes."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import d3gd
from d3gd.algorithms.base import Algorithm, Gradient, Models
from d3gd.arrays import Array, Floats
from d3gd.metrics import METRICS, Snapshot
from d3gd.network import Network
from d3gd.state import PerAgent

AGENTS, BATCH, HELD_OUT = 16, 32, 5000
EPOCH = 104  # local steps: 53,248 of the 55,000 samples, and a multiple of the 8 steps between rare exchanges
EPOCHS, TUNING_EPOCHS = 6, 3
STEPS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
TUNING_SEEDS = (100, 101)  # of other data splits, graphs, initial networks and mini-batches than those reported
FILES = (
    (
        "train-images-idx3-ubyte.gz",
        "train-labels-idx1-ubyte.gz",
        "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7",
        "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056",
    ),
    (
        "t10k-images-idx3-ubyte.gz",
        "t10k-labels-idx1-ubyte.gz",
        "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
        "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05",
    ),
)
ALONE, CENTRAL, AVERAGING = "local training alone", "all data in one place", "averaging each epoch"
PLAIN, MOMENTUM = "PerronD3GD", "PerronD3GD, momentum"
RARE, FEW = "PerronD3GD, momentum, H = 8", "PerronD3GD, momentum, H = 8, int8"
STEERED, OWN = "PerronD3GD, momentum, H = 8, steered", "PerronD3GD, momentum at every agent"

ADAM, QG_ADAM, CENTRAL_ADAM = d3gd.AdamW(weight_decay=0.0), "quasi-global Adam", "all data in one place, Adam"
RARE_ADAM, FEW_ADAM = "quasi-global Adam, H = 8", "quasi-global Adam, H = 8, int8"
HALF_ADAM = "quasi-global Adam, H = 4, int4"
TWICE, TWICE_ADAM = "PerronD3GD, momentum, 2 rounds, int8", "quasi-global Adam, 2 rounds, int8"
FEW_TWICE, HALF_TWICE = (f"quasi-global Adam, H = 8, 2 rounds, {what}" for what in ("int8", "int4"))

GRAPHS: Mapping[str, Callable[[int], d3gd.Digraph]] = {
    "directed": lambda seed: d3gd.graphs.erdos_renyi(AGENTS, 0.3, seed=seed),
    "undirected": lambda seed: d3gd.graphs.grid(4, 4, torus=True),
}

CELLS = tuple(product(GRAPHS, (0.1, 1.0)))  # graph and alpha


@dataclass(frozen=True, kw_only=True)
class Alone(Algorithm[Models]):
    """Gradient descent of every agent on its own data."""

    step_size: float

    def step(self, net: Network, gradient: Gradient, s: Models, k: int) -> Models:
        """Descend."""
        return Models(s.x - self.step_size * gradient())


class PooledState(NamedTuple):
    """The state of :class:`Pooled`."""

    x: PerAgent
    optimizer: Any


@dataclass(frozen=True, kw_only=True)
class Pooled(Algorithm[PooledState]):
    """Adam on the mean of all agents' gradients."""

    step_size: float

    needs = "all agents"

    def init(self, net: Network, x0: Floats) -> PooledState:
        """Start from zero."""
        return PooledState(x0, ADAM.init(x0))

    def step(self, net: Network, gradient: Gradient, s: PooledState, k: int) -> PooledState:
        """Descend together."""
        g = np.broadcast_to(net.everyone(gradient()).mean(axis=0), s.x.shape)
        optimizer, d = ADAM.direction(s.optimizer, s.x, g, k)
        return PooledState(s.x - self.step_size * d, optimizer)


@dataclass(frozen=True)
class Method:
    """How a row of the table trains."""

    make: Callable[[float], Algorithm[Any]]
    every: int = 1  # local steps per iteration
    everyone: bool = False  # whether agents exchange with all others, whatever the graph
    alone: bool = False  # whether they exchange with nobody

    @property
    def on_any_graph(self) -> bool:
        """Whether the graph makes no difference, so that it is trained on one of them only."""
        return self.everyone or self.alone


def _with_momentum(method: Algorithm[Any], every: int = 1) -> Algorithm[Any]:
    return d3gd.Local(method=method, optimizer=d3gd.Momentum(momentum=0.9), every=every)


def _rarely(step: float, *, steered: bool = False) -> Algorithm[Any]:
    return d3gd.Local(method=d3gd.PerronD3GD(step_size=step, momentum=0.5), every=8, steered=steered)


def _rarely_adam(step: float, every: int = 8, compress: str | None = None, rounds: int = 1) -> Algorithm[Any]:
    method = d3gd.QGAdam(step_size=step, scales_every=5 if compress else 1, rounds=rounds)
    local = d3gd.Local(method=method, every=every, steered=False)
    return _in_bytes(local, compress) if compress else local


def _in_bytes(method: Algorithm[Any], compress: str = "int8") -> Algorithm[Any]:
    return d3gd.Compressed(method=method, compress=compress)


METHODS: Mapping[str, Method] = {
    ALONE: Method(lambda step: _with_momentum(Alone(step_size=step)), alone=True),
    "Di-DGD": Method(lambda step: d3gd.DiDGD(step_size=step)),
    "D3GD": Method(lambda step: d3gd.D3GD(step_size=step)),
    "SGP": Method(lambda step: d3gd.SGP(step_size=step)),
    "Push-Pull": Method(lambda step: d3gd.PushPull(step_size=step)),
    "quasi-global momentum": Method(lambda step: d3gd.QGMomentum(step_size=step)),
    QG_ADAM: Method(lambda step: d3gd.QGAdam(step_size=step)),
    TWICE_ADAM: Method(lambda step: _in_bytes(d3gd.QGAdam(step_size=step, rounds=2))),
    RARE_ADAM: Method(_rarely_adam, every=8),
    FEW_ADAM: Method(lambda step: _rarely_adam(step, 8, "int8"), every=8),
    HALF_ADAM: Method(lambda step: _rarely_adam(step, 4, "int4"), every=4),
    FEW_TWICE: Method(lambda step: _rarely_adam(step, 8, "int8", rounds=2), every=8),
    HALF_TWICE: Method(lambda step: _rarely_adam(step, 8, "int4", rounds=2), every=8),
    PLAIN: Method(lambda step: d3gd.PerronD3GD(step_size=step)),
    OWN: Method(lambda step: _with_momentum(d3gd.PerronD3GD(step_size=step))),
    MOMENTUM: Method(lambda step: d3gd.PerronD3GD(step_size=step, momentum=0.9)),
    TWICE: Method(lambda step: _in_bytes(d3gd.PerronD3GD(step_size=step, momentum=0.9, rounds=2))),
    RARE: Method(_rarely, every=8),
    STEERED: Method(lambda step: _rarely(step, steered=True), every=8),
    FEW: Method(lambda step: _in_bytes(_rarely(step)), every=8),
    AVERAGING: Method(
        lambda step: _with_momentum(d3gd.DGD(step_size=step, combine="after"), EPOCH), every=EPOCH, everyone=True
    ),
    CENTRAL: Method(lambda step: _with_momentum(d3gd.DGD(step_size=step, combine="after")), everyone=True),
    CENTRAL_ADAM: Method(lambda step: Pooled(step_size=step), everyone=True),
}


def network(seed: int) -> nn.Module:
    """Two convolutions with group norm and a linear layer: 11,322 parameters."""
    torch.manual_seed(seed)
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 5, stride=2, padding=2), nn.GroupNorm(2, 8), nn.ReLU()),
        *(nn.Conv2d(8, 16, 5, stride=2, padding=2), nn.GroupNorm(2, 16), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(16 * 7 * 7, 10)),
    )


@lru_cache(maxsize=1)
def images(folder: Path) -> Mapping[str, tuple[Array, Array]]:
    """Return inputs and labels for training, validation and test; all seeds have the same ones."""
    (X, y), test = (
        d3gd.data.read_idx(folder / pictures, folder / labels, sha256=digests) for pictures, labels, *digests in FILES
    )
    order = np.random.default_rng(0).permutation(len(y))
    train, validation = order[HELD_OUT:], order[:HELD_OUT]
    found = {"train": (X[train], y[train]), "validation": (X[validation], y[validation]), "test": test}
    return {name: (inputs[:, None], labels) for name, (inputs, labels) in found.items()}


def _accuracy_of_mean(s: Snapshot) -> float:
    """Return the test accuracy of the mean model."""
    return float(s.problem.accuracies(s.mean.astype(np.float32))[0])


@dataclass(frozen=True)
class Trial:
    """One training: a method at a step size, on a graph, with a label skew and a seed."""

    method: str
    graph: str
    alpha: float
    step: float
    seed: int
    epochs: int
    on: str  # what accuracy is measured on, "validation" or "test"

    def run(self, folder: Path) -> dict[str, Any]:
        """Train, and return the accuracies and bytes after every epoch, ready for JSON."""
        torch.set_num_threads(1)
        data, method = images(folder), METHODS[self.method]
        parts = d3gd.data.split_by_label(*data["train"], agents=AGENTS, alpha=self.alpha, seed=self.seed)
        problem = d3gd.problems.torch_module(
            network(self.seed), parts, loss=cross_entropy, batch=BATCH, seed=self.seed, test=data[self.on]
        )
        result = d3gd.run(
            method.make(self.step),
            d3gd.graphs.complete(AGENTS) if method.everyone else GRAPHS[self.graph](self.seed),
            problem,
            iterations=self.epochs * EPOCH // method.every,
            every=EPOCH // method.every * (1 if self.on == "test" else self.epochs),  # tuning looks at the end alone
            seed=self.seed,
            dtype="float32",
            metrics={name: METRICS[name] for name in ("accuracy", "accuracy_worst", "bytes")}
            | {"accuracy_of_mean": _accuracy_of_mean},
        )
        curves = {name: values.tolist() for name, values in result.metrics.items()}
        return {"trial": asdict(self), "status": result.status, "seconds": result.seconds, **curves}

    @property
    def file(self) -> str:
        """The name of the trial's file."""
        words = f"{self.on} {self.graph} {self.alpha} {self.method} step {self.step} seed {self.seed}"
        return "-".join("".join(c if c.isalnum() or c == "." else " " for c in words).split()) + ".json"
