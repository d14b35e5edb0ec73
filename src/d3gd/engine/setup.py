"""Set-up of a run: check the user's arguments, divide the agents among ranks, compare the ranks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from d3gd import weights as weighting
from d3gd.algorithms.around import title
from d3gd.algorithms.base import Algorithm, require_admissible
from d3gd.algorithms.identity import describe
from d3gd.arrays import CSR, Floats, Ints
from d3gd.conditions import Conditions, require_conditions
from d3gd.conditions.method import Under
from d3gd.conditions.network import ConditionedNetwork
from d3gd.digest import digest
from d3gd.digraph import require_graph
from d3gd.distributed.halo import Halo
from d3gd.distributed.parts import divided
from d3gd.distributed.traffic import Traffic
from d3gd.engine.checks import require_declared
from d3gd.errors import ProblemError
from d3gd.graphs import Digraph
from d3gd.metrics import Metric, Snapshot, choose
from d3gd.network import Network
from d3gd.privacy.mechanism import Private, simulated_secret
from d3gd.privacy.settings import Privacy, require_privacy
from d3gd.problems import Problem
from d3gd.problems.checks import check_returned
from d3gd.runs import files
from d3gd.transports.base import Transport
from d3gd.validation import reals

_RUNAWAY = 1e12  # growth of a model beyond its start at which the run counts as diverged


@dataclass(frozen=True)
class Setup:
    """A run that is ready to start, as seen by one rank.

    Attributes:
        algorithm: The method, as passed by the user.
        method: The method as it runs, adapted to the conditions if there are any.
        net: The network.
        graph: The graph.
        weights: The initial weights.
        part: The objectives of this rank's agents.
        whole: The objectives of all agents, for metrics.
        bound: The largest entry of a model before the run counts as diverged.
        conditions: The conditions of the network.
        biased: The warning about a method that does not survive them.
        metrics: The metrics to record.
        fixed: Whether the network stays what it is; one of sites may change.
        privacy: The settings of differential privacy, if gradients have it.
    """

    fixed = True

    algorithm: Algorithm[Any]
    method: Algorithm[Any]
    net: Network
    graph: Digraph
    weights: CSR
    part: Any
    whole: Any
    bound: float
    conditions: Conditions | None
    biased: str
    metrics: Mapping[str, Metric]
    privacy: Privacy | None = None

    @property
    def halo(self) -> Halo:
        """The exchange of rows with other ranks."""
        return self.net.halo

    @property
    def ranks(self) -> Transport:
        """The ranks."""
        return self.net.halo.transport

    @property
    def name(self) -> str:
        """The method's name."""
        return title(self.algorithm)

    def describe(self) -> dict[str, Any]:
        """Return the settings of the run, ready for JSON."""
        whole = self.whole
        return {
            "algorithm": describe(self.algorithm),
            "graph": {
                "agents": self.graph.n,
                "links": self.graph.link_count,
                **({"labels": list(self.graph.labels)} if self.graph.labels else {}),
            },
            "problem": whole.describe() if isinstance(whole, Problem) else {"kind": type(whole).__name__},
            "dtype": str(self.net.dtype),
            **({} if self.conditions is None else {"conditions": self.conditions.describe()}),
            **({"biased": self.biased} if self.biased else {}),
            **({} if self.privacy is None else {"privacy": self.privacy.describe()}),
            "metrics": list(self.metrics),
            "versions": files.versions(),
        }

    def matrix(self, state: Any) -> CSR:
        """Return the weights in use, of all agents; collective."""
        return self.graph.matrix(self.halo.everywhere(self.method.weights(self.net, state)))

    def traffic(self, sent: Traffic) -> Ints | None:
        """Return the bytes along every edge of the network, or None if they are not known; collective."""
        return self.halo.everywhere(sent.per_edge(self.net.loops)) if sent.known else None

    def identity(self, settings: Mapping[str, Any]) -> list[Any]:
        """Return what identifies an experiment, apart from its start; collective.

        Args:
            settings: The settings, from :meth:`describe` and the arguments of the run.
        """
        data = self.whole.fingerprint() if isinstance(self.whole, Problem) else settings["problem"]
        names = ("algorithm", "every", "seed", "dtype", "metrics", "conditions", "privacy", "record_weights")
        return [data, *(settings[name] for name in names if name in settings)]

    def require_same(self, x0: Floats, *settings: Any) -> None:
        """Raise an error unless all ranks are about to run the same experiment with the same settings."""
        if self.ranks.ranks == 1:
            return
        conditions = None if self.conditions is None else self.conditions.describe()
        plan = [describe(self.algorithm), self.graph.indptr, self.graph.sources, self.weights.data, x0]
        plan += [conditions, list(self.metrics), str(self.net.dtype), self.privacy and self.privacy.describe()]
        self.ranks.require_same(digest(*plan, *settings), "an experiment (algorithm, network, start or settings)")


def set_up(
    algorithm: Algorithm[Any],
    graph: Digraph,
    problem: Any,
    *,
    seed: int,
    weights: CSR | None,
    x0: Floats | None,
    conditions: Conditions | None,
    metrics: Iterable[str] | Mapping[str, Metric] | None,
    transport: Transport,
    dtype: str,
    privacy: Privacy | None = None,
) -> tuple[Setup, Floats]:
    """Check the arguments of :func:`d3gd.run`; return the set-up and the initial models of all agents.

    The initial models are as large as the current ones, so the caller should not keep them.
    """
    transport.require_same_versions()
    with transport.together():
        require_graph(graph)
        graph.require_strongly_connected()
        matrix = weighting.metropolis(graph) if weights is None else weighting.check(weights, graph)
        require_admissible(algorithm, graph, matrix)
        require_declared(algorithm)
        require_privacy(privacy)
        method, net, biased = _placed(algorithm, graph, matrix, conditions, seed=seed, transport=transport, dtype=dtype)
    part, whole = divided(problem, net.halo, graph.n)
    with transport.together():
        start = starting_models(graph.n, part, x0, net.dtype)
        chosen = choose(metrics, whole, graph.n)
    if privacy is not None:
        part, chosen = _private(part, privacy, simulated_secret(seed), transport, chosen)
    bound = runaway(start, net.dtype)
    return Setup(algorithm, method, net, graph, matrix, part, whole, bound, conditions, biased, chosen, privacy), start


def _private(
    part: Any, privacy: Privacy, secret: bytes, transport: Transport, metrics: dict[str, Metric]
) -> tuple[Private, dict[str, Metric]]:
    """Return the private gradients of this rank's agents, and the metrics with the epsilon of the worst agent."""
    with transport.together():
        private = Private(part, privacy, secret)
        privacy.epsilon(steps=1)  # an error now if there is no accountant
    sample = float(np.max(transport.each(np.array(private.sample))))

    def epsilon(s: Snapshot) -> float:
        return privacy.epsilon(steps=s.gradients, sample=sample)

    return private, {**metrics, "epsilon": epsilon}


def runaway(start: Floats, dtype: Any) -> float:
    """Return the largest entry of a model before a run from these models counts as diverged."""
    return min(_RUNAWAY * (1 + float(np.abs(start).max(initial=0))), float(np.finfo(dtype).max))


def _placed(
    algorithm: Algorithm[Any],
    graph: Digraph,
    weights: CSR,
    conditions: Conditions | None,
    **how: Any,
) -> tuple[Algorithm[Any], Network, str]:
    """Return the algorithm as it runs, its network, and the warning about a bias."""
    how["needs"] = algorithm.needs
    require_conditions(conditions)
    if conditions is None:
        return algorithm, Network(graph, weights, **how), ""
    biased = conditions.require_survival(algorithm)
    conditions.require_fit(graph)
    net = ConditionedNetwork(graph, weights, conditions, **how)
    return Under(algorithm, net, pauses="pauses" in conditions.hardships), net, biased


def starting_models(n: int, problem: Any, x0: Floats | None, dtype: Any) -> Floats:
    """Return the initial models of all agents, checked against the problem and the precision."""
    shape = (n, problem.dim)
    if x0 is None and isinstance(problem, Problem):
        x0 = check_returned(problem.start(), shape[1:], f"{type(problem).__name__}.start")
    start = np.zeros(shape) if x0 is None else reals("x0", x0, error=ProblemError)
    if start.shape not in (shape, shape[1:]):
        raise ProblemError(f"x0 has shape {start.shape}; give {shape}, or {shape[1:]} to start all agents at one model")
    if not np.isfinite(start).all():
        raise ProblemError("x0 holds NaN or infinite numbers; give finite ones")
    largest = float(np.abs(start).max(initial=0))
    if largest > float(np.finfo(dtype).max):
        raise ProblemError(f"x0 holds numbers up to {largest:.3g}, which {dtype} cannot; use smaller ones, or float64")
    return np.array(np.broadcast_to(start, shape), dtype=dtype)
