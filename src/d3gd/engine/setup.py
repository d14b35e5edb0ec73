"""From what a user passes to a run that is ready to begin: checked, divided among ranks, the same on all of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from d3gd import weights as weighting
from d3gd.algorithms.base import Algorithm, require_admissible
from d3gd.algorithms.identity import describe
from d3gd.arrays import CSR, Floats
from d3gd.conditions import Conditions
from d3gd.conditions.method import Under
from d3gd.conditions.network import ConditionedNetwork
from d3gd.digest import digest
from d3gd.distributed.halo import Halo
from d3gd.distributed.parts import divided
from d3gd.engine.checks import require_declared
from d3gd.errors import ProblemError, SettingsError
from d3gd.graphs import Digraph
from d3gd.metrics import Metric, choose
from d3gd.network import Network
from d3gd.problems import Problem
from d3gd.runs import files
from d3gd.transports.base import Transport

_RUNAWAY = 1e12  # how far beyond its start a model may go before the run counts as diverged


@dataclass(frozen=True)
class Setup:
    """A run that is ready to begin, as one rank sees it.

    Attributes:
        algorithm: The method, as the user made it.
        method: The method as it runs: under conditions, if there are any.
        net: The network.
        graph: Who hears whom.
        weights: The initial weights.
        part: The objectives of this rank's agents.
        whole: The objectives of all agents, for metrics.
        bound: The largest number in a model before the run counts as diverged.
        conditions: What the network does to messages and agents.
        biased: What to say about a method that does not survive them.
        metrics: What to record.
    """

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

    @property
    def halo(self) -> Halo:
        """The rank's border."""
        return self.net.halo

    @property
    def ranks(self) -> Transport:
        """The ranks."""
        return self.net.halo.transport

    @property
    def name(self) -> str:
        """The method's name."""
        return type(self.algorithm).__name__

    def describe(self) -> dict[str, Any]:
        """Return what is run, ready for JSON."""
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
            "metrics": list(self.metrics),
            "versions": files.versions(),
        }

    def identity(self, settings: Mapping[str, Any]) -> list[Any]:
        """Return what two runs must share to be the same experiment, besides their start; collective.

        Args:
            settings: What is run, from :meth:`describe` and the run's own settings.
        """
        data = self.whole.fingerprint() if isinstance(self.whole, Problem) else settings["problem"]
        names = ("algorithm", "every", "seed", "dtype", "metrics", "conditions")
        return [data, *(settings[name] for name in names if name in settings)]

    def require_same(self, x0: Floats, *settings: Any) -> None:
        """Raise an error unless all ranks are about to run the same experiment with the same settings."""
        if self.ranks.ranks == 1:
            return
        conditions = None if self.conditions is None else self.conditions.describe()
        plan = [describe(self.algorithm), self.graph.indptr, self.graph.sources, self.weights.data, x0]
        plan += [conditions, list(self.metrics), str(self.net.dtype)]
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
) -> tuple[Setup, Floats]:
    """Check what a user passes to :func:`d3gd.run`; return it put together, and the initial models of all agents.

    Those are as large as the models of today, so that nobody should keep them.
    """
    with transport.together():
        graph.require_strongly_connected()
        matrix = weighting.metropolis(graph) if weights is None else weighting.check(weights, graph)
        require_admissible(algorithm, graph, matrix)
        require_declared(algorithm)
        method, net, biased = _placed(algorithm, graph, matrix, conditions, seed=seed, transport=transport, dtype=dtype)
    part, whole = divided(problem, net.halo, graph.n)
    with transport.together():
        start = _start(graph.n, part, x0, net.dtype)
        chosen = choose(metrics, whole, graph.n)
    bound = min(_RUNAWAY * (1 + float(np.abs(start).max(initial=0))), float(np.finfo(net.dtype).max))
    return Setup(algorithm, method, net, graph, matrix, part, whole, bound, conditions, biased, chosen), start


def _placed(
    algorithm: Algorithm[Any],
    graph: Digraph,
    weights: CSR,
    conditions: Conditions | None,
    **how: Any,
) -> tuple[Algorithm[Any], Network, str]:
    """Return the algorithm as it runs on its network, that network, and what to say about both."""
    how["sees_all"] = algorithm.needs == "all agents"
    if conditions is not None and not isinstance(conditions, Conditions):
        raise SettingsError(
            f"conditions is a {type(conditions).__name__}; pass d3gd.Conditions(loss=0.1), for instance"
        )
    if conditions is None:
        return algorithm, Network(graph, weights, **how), ""
    biased = conditions.require_survival(algorithm)
    conditions.require_fit(graph)
    net = ConditionedNetwork(graph, weights, conditions, **how)
    return Under(algorithm, net, pauses="pauses" in conditions.hardships), net, biased


def _start(n: int, problem: Any, x0: Floats | None, dtype: Any) -> Floats:
    """Return the initial models of all agents, once they fit the problem and the precision."""
    shape = (n, problem.dim)
    if x0 is None and isinstance(problem, Problem):
        x0 = problem.start()
    start = np.zeros(shape) if x0 is None else np.asarray(x0, dtype=np.float64)
    if start.shape not in (shape, shape[1:]):
        raise ProblemError(f"x0 has shape {start.shape}; give {shape}, or {shape[1:]} to start all agents alike")
    if not np.isfinite(start).all():
        raise ProblemError("x0 holds NaN or infinite numbers; give finite ones")
    largest = float(np.abs(start).max(initial=0))
    if largest > float(np.finfo(dtype).max):
        raise ProblemError(f"x0 holds numbers up to {largest:.3g}, which {dtype} cannot; use smaller ones, or float64")
    return np.array(np.broadcast_to(start, shape), dtype=dtype)
