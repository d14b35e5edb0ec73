"""Metrics of a run: the only code that sees all agents at once.

Each metric is a function of a :class:`Snapshot` and returns a number, or one number per agent. :data:`METRICS` names
them; ``d3gd.run(..., metrics=[...])`` selects some, or takes a mapping of names to functions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from d3gd import theory
from d3gd.arrays import CSR, Array, Floats, Ints
from d3gd.errors import SettingsError, WeightsError
from d3gd.problems import Problem
from d3gd.problems.checks import check_returned
from d3gd.schedules import Schedule, at
from d3gd.validation import function, listed, shown
from d3gd.weights import perron

EXACT_UP_TO = 1000  # agents; with more, metrics that need n gradients of F are evaluated at the mean model


@dataclass(frozen=True)
class Snapshot:
    """A run at one iteration, seen from outside.

    Attributes:
        k: The iteration.
        x: All agents' models, (n, d).
        weights: The weights in use, CSR.
        scale: Each agent's estimate of its Perron weight, or None.
        problem: The problem.
        step_size: The algorithm's step size.
        bytes_sent: Bytes sent over all edges so far.
        gradients: Gradient evaluations per agent so far.
        records: All records so far, as pairs of an iteration and its metrics; the last is this one. Callbacks see them,
            metrics do not.
    """

    k: int
    x: Floats
    weights: CSR
    scale: Floats | None
    problem: Any
    step_size: float | Schedule
    bytes_sent: int
    gradients: int = 0
    records: Sequence[tuple[int, Mapping[str, Any]]] = ()

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The metrics at this iteration, by name: a number each, or one number per agent."""
        return self.records[-1][1] if self.records else {}

    @cached_property
    def pi(self) -> Floats:
        """The left Perron vector of the weights in use; NaN if they no longer connect all agents."""
        A = self.weights
        return _perron(A.shape[0], A.indptr.tobytes(), A.indices.tobytes(), A.data.tobytes(), str(A.indices.dtype))

    @cached_property
    def mean(self) -> Floats:
        """The mean model, (1, d)."""
        mean: Floats = self.x.mean(axis=0, keepdims=True)
        return mean

    @cached_property
    def accuracies(self) -> Floats:
        """Every agent's accuracy on the test data."""
        accuracies = self.problem.accuracies(self.x)
        if accuracies is None:
            raise SettingsError("this problem has no test data, so no accuracy; leave it out of metrics")
        return check_returned(accuracies, self.x.shape[:1], f"{type(self.problem).__name__}.accuracies")


@lru_cache(maxsize=1)  # many methods have constant weights
def _perron(n: int, indptr: bytes, indices: bytes, data: bytes, index: str) -> Floats:
    places = np.frombuffer(indices, dtype=index), np.frombuffer(indptr, dtype=index)
    try:
        pi = perron(csr_array((np.frombuffer(data), *places), shape=(n, n)))
    except WeightsError:  # a metric must not decide how a run ends
        pi = np.full(n, np.nan)
    pi.setflags(write=False)
    return pi


Metric: TypeAlias = Callable[[Snapshot], Any]


def stationarity(s: Snapshot) -> float:
    r"""Return :math:`\frac1n \sum_i \|\nabla F(x_i)\|^2`."""
    return _mean_square(_global_gradients(s.problem, s.x))


def stationarity_at_mean(s: Snapshot) -> float:
    r"""Return :math:`\|\nabla F(\bar x)\|^2` at the mean model: one gradient of F instead of n."""
    return _mean_square(_global_gradients(s.problem, s.mean))


def disagreement(s: Snapshot) -> float:
    r"""Return :math:`\frac{1}{n^2} \sum_{ij} \|x_i - x_j\|^2 = \frac2n \sum_i \|x_i - \bar x\|^2`."""
    return 2 * _mean_square(s.x - s.mean)


def loss(s: Snapshot) -> float:
    r"""Return :math:`\frac1n \sum_i F(x_i)`."""
    return _loss(s.problem, s.x)


def loss_at_mean(s: Snapshot) -> float:
    r"""Return :math:`F(\bar x)` at the mean model."""
    return _loss(s.problem, s.mean)


def loss_per_agent(s: Snapshot) -> Floats:
    """Return every agent's objective on its own data, at its own model."""
    losses = s.problem.losses(s.x)
    return np.array(check_returned(losses, s.x.shape[:1], f"{type(s.problem).__name__}.losses"))


def accuracy(s: Snapshot) -> float:
    """Return the share of test samples that the agents' models classify correctly, averaged over agents."""
    return float(s.accuracies.mean())


def accuracy_worst(s: Snapshot) -> float:
    """Return the test accuracy of the worst agent."""
    return float(s.accuracies.min())


def accuracy_per_agent(s: Snapshot) -> Floats:
    """Return every agent's test accuracy."""
    return s.accuracies


def n_min_pi(s: Snapshot) -> float:
    r"""Return :math:`n \min_i \pi_i`: 1 if all agents have equal influence, near 0 if one is starved."""
    return float(len(s.pi) * s.pi.min())


def perron_error(s: Snapshot) -> float:
    r"""Return :math:`\max_i |[y_i]_i / \pi_i - 1|`: the relative error of the agents' Perron weights."""
    return float(np.max(np.abs(_scale(s) / s.pi - 1)))


def design(s: Snapshot) -> float:
    r"""Return the paper's design function :math:`J_k(A^k)`."""
    g = s.problem.gradients(s.x, s.k)
    return theory.design_value(s.weights, s.x, g, _scale(s), at(s.step_size, s.k), s.pi)


def bytes_sent(s: Snapshot) -> int:
    """Return the bytes sent over all edges so far; self-loops are free."""
    return s.bytes_sent


def gradients(s: Snapshot) -> int:
    """Return the number of gradient evaluations per agent so far, on mini-batches or all data."""
    return s.gradients


METRICS: Mapping[str, Metric] = {
    "stationarity": stationarity,
    "stationarity_at_mean": stationarity_at_mean,
    "disagreement": disagreement,
    "loss": loss,
    "loss_at_mean": loss_at_mean,
    "loss_per_agent": loss_per_agent,
    "accuracy": accuracy,
    "accuracy_worst": accuracy_worst,
    "accuracy_per_agent": accuracy_per_agent,
    "n_min_pi": n_min_pi,
    "perron_error": perron_error,
    "design": design,
    "bytes": bytes_sent,
    "gradients": gradients,
}


def default_metrics(problem: Any, n: int) -> dict[str, Metric]:
    """Return the default metrics of a run; above :data:`EXACT_UP_TO` agents, F at the mean model only."""
    whole = n <= EXACT_UP_TO
    names = ["stationarity" if whole else "stationarity_at_mean", "disagreement"]
    if not isinstance(problem, Problem) or problem.has_loss:
        names.append("loss" if whole else "loss_at_mean")
    if whole:
        names.append("n_min_pi")
        if isinstance(problem, Problem) and problem.accuracies(np.zeros((1, problem.dim))) is not None:
            names += ["accuracy", "accuracy_worst", "accuracy_per_agent"]
    return {name: METRICS[name] for name in [*names, "bytes"]}


def choose(metrics: "Iterable[str] | Mapping[str, Metric] | None", problem: Any, n: int) -> dict[str, Metric]:
    """Return the metrics to record, by name."""
    if metrics is None:
        return default_metrics(problem, n)
    if isinstance(metrics, Mapping):
        for name, metric in metrics.items():
            _require_metric(name, metric)
        return dict(metrics)
    needed = "names, or a mapping of names to functions"
    names = [metrics] if isinstance(metrics, str) else listed("metrics", metrics, needed)
    unknown = [name for name in names if not isinstance(name, str) or name not in METRICS]
    if unknown:
        raise SettingsError(f"metric {shown(unknown[0])} is not known; choose from {', '.join(METRICS)}")
    return {name: METRICS[name] for name in names}


class Log:
    """The records of a run so far: the metrics of each recorded iteration."""

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self._metrics = metrics
        self.rows: list[tuple[int, dict[str, Any]]] = []

    @property
    def names(self) -> list[str]:
        """The metrics' names."""
        return list(self._metrics)

    def has(self, k: int) -> bool:
        """Whether iteration ``k`` is the last that was recorded."""
        return bool(self.rows) and self.rows[-1][0] == k

    def add(self, snapshot: Snapshot) -> dict[str, Any]:
        """Record one iteration, with all metrics or none."""
        row = {name: _valid(name, metric(snapshot)) for name, metric in self._metrics.items()}
        first = self.rows[0][1] if self.rows else row
        for name, value in row.items():
            _require_shape(name, np.shape(value), np.shape(first[name]))
        self.rows.append((snapshot.k, row))
        return row

    def iterations(self) -> Ints:
        """Return the recorded iterations."""
        return np.array([k for k, _ in self.rows], dtype=np.int64)

    def arrays(self) -> dict[str, Array]:
        """Return one array per metric."""
        return {name: np.array([row[name] for _, row in self.rows]) for name in self._metrics}


def _require_metric(name: Any, metric: Any) -> None:
    if not isinstance(name, str) or name in ("", "iteration") or "[" in name or not name.isprintable():
        raise SettingsError(
            f"a metric cannot be named {shown(name)}, which could not be read back from metrics.csv; rename it"
        )
    function(f"metric {name!r}", metric, "a snapshot")


def _valid(name: str, value: Any) -> Any:
    """Return a metric's number as it is, its vector as a new array; raise an error unless it is one of them."""
    try:
        array = np.array(value)  # the metric may reuse its own
    except ValueError:  # lists of several lengths
        array = np.asarray(None)
    numbers = array.dtype.kind in "biuf"
    if not numbers or array.ndim > 1 or array.size == 0:
        found = f"shape {array.shape}" if numbers else f"a {type(value).__name__}"
        raise SettingsError(f"metric {name!r} returned {found}; return one number, or one number per agent")
    return array if isinstance(value, np.ndarray) or array.ndim else value


def _require_shape(name: str, found: tuple[int, ...], first: tuple[int, ...]) -> None:
    if found != first:
        raise SettingsError(f"metric {name!r} returned shape {found} after shape {first}; keep the same shape")


def _global_gradients(problem: Any, x: Floats) -> Array:
    return check_returned(problem.global_gradients(x), x.shape, f"{type(problem).__name__}.global_gradients")


def _loss(problem: Any, x: Floats) -> float:
    return float(check_returned(problem.loss(x), (), f"{type(problem).__name__}.loss"))


def _mean_square(rows: Floats) -> float:
    return float(np.einsum("id,id->", rows, rows) / len(rows))


def _scale(s: Snapshot) -> Floats:
    if s.scale is None:
        raise SettingsError(
            "this algorithm keeps no Perron estimate, so 'perron_error' and 'design' have no meaning for it; "
            "leave them out of metrics"
        )
    return s.scale
