"""Weights planned from data: agents flood a sketch of their gradients, and all compute the same weights."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.arrays import Floats
from d3gd.digraph import Digraph
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.rules.base import Now, Rule, Use
from d3gd.rules.fixed import Known, known
from d3gd.rules.flood import Flood, no_flood, pass_on, start
from d3gd.rules.sketch import Sketch
from d3gd.state import Common, Count, PerAgent
from d3gd.steady.fast import fast_weights
from d3gd.steady.planner import Planner

SKETCH = 64  # numbers in a sketch
_MEMORY = 0.9  # of the averages, per iteration
_WINDOW = 30  # iterations over which averages are taken; older ones would have a weight of 4 %
_FIRST = 5  # the iteration of the first flood
_APART = 50  # least iterations between two plans
_GROWTH = 1.5  # later plans are further apart: gradients then change slowly
# Corrections remove the deviations that a plan is made against. So that weights still mix once these are gone, all
# variances are raised by this share of the mean variance and gradient.
_SPARE = 0.1


class PlanState(NamedTuple):
    """The state of :class:`Planned`."""

    now: Known  # the weights in use
    first: Common  # (all edges,)  the weights planned for mixing
    rounds: Count  # the graph's diameter: how long a flood takes
    depth: Count  # of the planner's noise sum, which takes eigenvalues to find
    mean: PerAgent  # (agents, s)  average of the sketched gradients with corrections
    spread: PerAgent  # (agents,)   average of the gradient's half squared changes: its variance
    last: PerAgent  # (agents, s)  the sketch of the last gradient
    flood: Flood  # what agents know of each other's averages


@dataclass(frozen=True)
class Planned(Rule):
    r"""Weights for the steady state that everyone's sketched gradients predict.

    Every agent averages sketches of what moves its model: gradient and correction. At iterations that are further and
    further apart it floods this average and the variance of its gradient: s + 1 numbers, which cross every edge once.
    After as many iterations as the graph's diameter, all agents have the same table, solve the same problem
    (:mod:`d3gd.steady.planner`) to the same bits, and apply their own row. The Perron vector follows from the plan.

    Until the first plan, weights are those planned for mixing.
    """

    corrected: bool

    looks = True

    def init(self, net: Network, x0: Floats) -> PlanState:
        """Discover the network, and start with weights planned for mixing."""
        if not net.reliable:
            raise SettingsError(
                "weights planned from data need every message to arrive at once, so that all agents plan from the same "
                'table; choose rule = "mixing" or "fixed" under these conditions'
            )
        found = net.survey()
        sketches = np.zeros((len(net.agents), Sketch(x0.shape[1], SKETCH).length))
        a = fast_weights(found.graph)
        return PlanState(
            flood=no_flood(net, sketches.shape[1] + 1),
            now=known(found.graph, a, corrected=self.corrected, damping=net.damping),
            first=a,
            rounds=found.graph.diameter(),
            depth=_planner(found.graph, a).depth,
            mean=sketches,
            spread=np.zeros(len(net.agents)),
            last=sketches,
        )

    def use(self, net: Network, s: PlanState, k: int) -> Use:
        """Return the weights of the last plan."""
        return s.now.use(net, k)

    def carry(self, net: Network, old: PlanState, new: PlanState, now: Now) -> Floats:
        r"""Keep :math:`\pi_i v_i`, so that its sum over agents stays zero under a new plan."""
        if new.now is old.now:
            return now.v
        carried: Floats = now.v * (old.now.pi / new.now.pi)[net.agents, None]
        return carried

    def begin(self, net: Network, s: PlanState, now: Now) -> PlanState:
        """Average; then start a flood, forward it, or plan, whichever is due."""
        k = now.k
        told, tells = _tellings(k, s.rounds)
        age = k - max(0, tells - _WINDOW)
        if age >= 0:
            s = self._averaged(net, s, now, age)
        if k == tells:
            rows = np.column_stack([s.mean / (1 - _MEMORY ** (age + 1)), s.spread / (1 - _MEMORY**age)])
            s, told = s._replace(flood=start(net, rows)), k
        if k == told + s.rounds:
            return self._plan(net, s, now.gamma)
        if told <= k < told + s.rounds:
            return s._replace(flood=pass_on(net, s.flood))
        return s

    def _averaged(self, net: Network, s: PlanState, now: Now, age: int) -> PlanState:
        """Return the averages of this iteration and of the ``age`` before it."""
        sketch = Sketch(now.g.shape[1], SKETCH)
        last = sketch(now.g)
        pushes = (1 - _MEMORY) * (last + net.n * s.now.pi[net.agents, None] * sketch(now.v))
        if age == 0:
            return s._replace(mean=pushes, spread=np.zeros_like(s.spread), last=last)
        change = last - s.last
        return s._replace(
            mean=_MEMORY * s.mean + pushes,
            spread=_MEMORY * s.spread + (1 - _MEMORY) * 0.5 * np.einsum("is,is->i", change, change),
            last=last,
        )

    def _plan(self, net: Network, s: PlanState, gamma: float) -> PlanState:
        table = s.flood.table[0]  # every agent's is the same
        G, variance = table[:, :-1], table[:, -1]
        # The noise in the averages' inner products is known, and subtracted.
        noise = (1 - _MEMORY) / (1 + _MEMORY) * np.diag(variance)
        products = np.einsum("is,js->ij", G, G) - noise
        if not np.isfinite(products).all():
            return s  # diverged: the engine will see it
        sizes, directions = np.linalg.eigh(products)
        G = directions * np.sqrt(np.maximum(sizes, 0))
        if self.corrected:
            variance = variance + _SPARE * (variance.mean() + np.einsum("is,is->", G, G) / net.n)
        graph = net.survey().graph
        plan = _planner(graph, s.first, s.depth).plan(s.now.a, G, variance, gamma)
        return s._replace(now=known(graph, plan, corrected=self.corrected, damping=net.damping))


def _planner(graph: Digraph, a0: Floats, depth: int | None = None) -> Planner:
    return Planner(graph.n, graph.targets, graph.sources, a0, doublings=depth, instead='choose rule = "mixing"')


def _tellings(k: int, rounds: int) -> tuple[int, int]:
    """Return when the last flood before iteration ``k`` began, and when the next one does, ``k`` included.

    Before the first flood, the last one counts as long finished.
    """
    last, later = -1 - rounds, _FIRST
    while later < k:
        last, later = later, max(later + _APART, later + rounds + 1, int(_GROWTH * later))
    return last, later
