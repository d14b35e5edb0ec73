"""Planned weights: agents tell everyone a sketch of their gradients, and all work out the same weights."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from d3gd.arrays import Floats
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.rules.base import Now, Rule, Use
from d3gd.rules.fixed import Known, known
from d3gd.rules.flood import Flood, no_flood, pass_on, start
from d3gd.rules.sketch import Sketch
from d3gd.state import Count, PerAgent
from d3gd.steady.planner import Planner

SKETCH = 64  # numbers in a sketch
_MEMORY = 0.9  # of the averages, per iteration
_WINDOW = 30  # iterations before agents tell their averages at which these begin: of what is older, 4 % would be left
_FIRST = 5  # iterations before the first sketches are worth telling
_APART = 50  # least iterations between two plans
_GROWTH = 1.5  # later plans stand further apart: gradients then change slowly
# Corrections go on removing the deviations that a plan is made against. So that it still mixes once they are gone, all
# variances are raised by this share of the mean variance and gradient.
_SPARE = 0.1


class PlanState(NamedTuple):
    """The memory of planned weights."""

    now: Known  # the weights in use and what everyone knows of them
    rounds: Count  # the graph's diameter: how long a flood takes
    depth: Count  # of the planner's noise sum, which takes eigenvalues to find
    mean: PerAgent  # (agents, s)  average of the sketched pushes
    spread: PerAgent  # (agents,)   average of the gradient's half squared changes: its variance
    last: PerAgent  # (agents, s)  the sketch of the last gradient
    flood: Flood  # what agents know of each other's averages


@dataclass(frozen=True)
class Planned(Rule):
    r"""Weights for the steady state that everyone's sketched gradients predict.

    For some iterations every agent averages sketches of what pushes its model, gradient and correction alike. Then, at
    iterations that are ever further apart, it tells everyone that average and its gradient's variance: s + 1 numbers,
    passed on from neighbour to neighbour, once across every edge. After as many iterations as the graph's diameter all
    agents know all, solve the same problem (:mod:`d3gd.steady.planner`) to the same bits, and apply their own row. The
    Perron vector of planned weights is known exactly, so that nothing need be tracked for it.

    The graph and the initial weights are known to all from the set-up.
    """

    after: bool
    corrected: bool

    def init(self, net: Network, x0: Floats) -> PlanState:
        """Start with the initial weights."""
        if not net.reliable:
            raise SettingsError(
                "planned weights need every message to arrive at once: all agents must come to know the same, to plan "
                'the same; choose rule = "fixed" or "local" under these conditions'
            )
        sketches = np.zeros((len(net.agents), Sketch(x0.shape[1], SKETCH).length))
        return PlanState(
            flood=no_flood(net, sketches.shape[1] + 1),  # the first to say so if the network is too large
            now=known(net, net.everywhere_a0, corrected=self.corrected),
            rounds=net.graph.diameter(),
            depth=self._planner(net).depth,
            mean=sketches,
            spread=np.zeros(len(net.agents)),
            last=sketches,
        )

    def use(self, net: Network, s: PlanState) -> Use:
        """Return the weights of the last plan."""
        return s.now.use(net)

    def begin(self, net: Network, s: PlanState, now: Now) -> PlanState:
        """Average; then start a flood, pass it on or plan, whatever the iteration is for."""
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

    def _planner(self, net: Network, depth: int | None = None) -> Planner:
        graph = net.graph
        return Planner(net.n, graph.targets, graph.sources, net.everywhere_a0, self.after, doublings=depth)

    def _averaged(self, net: Network, s: PlanState, now: Now, age: int) -> PlanState:
        """Return the averages of this iteration and of the ``age`` before it."""
        sketch = Sketch(now.g.shape[1], SKETCH)
        last = sketch(now.g)
        pushes = (1 - _MEMORY) * sketch(now.g + net.n * now.w)
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
        # What of the averages' inner products is noise is known, and taken out.
        noise = (1 - _MEMORY) / (1 + _MEMORY) * np.diag(variance)
        products = np.einsum("is,js->ij", G, G) - noise
        if not np.isfinite(products).all():
            return s  # diverged: the engine will see it
        sizes, directions = np.linalg.eigh(products)
        G = directions * np.sqrt(np.maximum(sizes, 0))
        if self.corrected:
            variance = variance + _SPARE * (variance.mean() + np.einsum("is,is->", G, G) / net.n)
        plan = self._planner(net, s.depth).plan(s.now.a, G, variance, gamma)
        return s._replace(now=known(net, plan, corrected=self.corrected))


def _tellings(k: int, rounds: int) -> tuple[int, int]:
    """Return when agents last began to tell everyone before iteration ``k``, and when they next do, ``k`` included.

    Before the first time, the last one is so long ago that its plan has been made.
    """
    last, later = -1 - rounds, _FIRST
    while later < k:
        last, later = later, max(later + _APART, later + rounds + 1, int(_GROWTH * later))
    return last, later
