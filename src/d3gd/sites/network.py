"""One site's agent, with the operations that algorithms compute with: those of any other network."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from d3gd.arrays import CSR, Array, Bools, Floats
from d3gd.conditions import Conditions
from d3gd.conditions.network import ConditionedNetwork
from d3gd.digraph import Digraph
from d3gd.distributed.halo import Halo
from d3gd.distributed.partition import partition
from d3gd.distributed.received import Received
from d3gd.distributed.survey import Survey
from d3gd.errors import SettingsError
from d3gd.network import Network
from d3gd.sites.clipping import Clipping
from d3gd.sites.messages import Spec
from d3gd.sites.rounds import Rounds
from d3gd.transports.alone import Alone

S = TypeVar("S")

_LOG = "_posted."  # of rounds that can be sent again, in a checkpoint


class SiteHalo(Halo):
    """The rows that a site exchanges with its neighbours.

    To the engine a site is a single process: nothing is collective, and what it gathers is its own.

    Args:
        graph: The whole network, with the sites' names as labels.
        agent: The index of this site.
        rounds: The rounds with its neighbours.

    Attributes:
        arrived: Called with a mask of the received rows, its own first, after every round.
        clipping: Clips what is far from what this site sends itself, if it is not trusted.
        last: A mask of the rows that arrived in the last round.
        distance: The root mean square of the distances between what it last sent and what it heard, by the largest
            array.
    """

    def __init__(self, graph: Digraph, agent: int, rounds: Rounds) -> None:
        super().__init__(graph, Alone())
        self.block = partition(graph, graph.n).block(agent)
        self.rounds = rounds
        self.arrived: Callable[[Bools], None] = lambda mask: None
        self.clipping: Clipping | None = None
        self.distance = 0.0
        self.last: Bools = np.ones(len(self.block.heard), dtype=bool)
        labels = graph.labels or tuple(map(str, range(graph.n)))
        self._names = [labels[other] for other in self.block.heard.tolist()]

    def exchange(
        self, arrays: dict[str, Array], apart: Callable[[tuple[int, ...]], bool], over: Bools | None = None
    ) -> tuple[Mapping[str, Received], Callable[[], None] | None]:
        """Send the agent's rows to those who hear it; return the received rows and a function that waits for them."""
        if over is not None:
            raise SettingsError("a method prunes links, which sites cannot agree on; choose one that does not")
        collect = self.rounds.swap(arrays)
        self.wire_bytes += sum(array.nbytes for array in arrays.values()) * len(self.block.sends)
        whole = {name: np.zeros((len(self._names), *array.shape[1:]), array.dtype) for name, array in arrays.items()}

        def arrive() -> None:
            found = collect()
            mask = np.array([True, *(name in found for name in self._names[1:])])
            for place, name in enumerate(self._names[1:], 1):
                for array, row in found.get(name, {}).items():
                    whole[array][place] = row[0]
            if self.clipping is not None:
                for name, rows in whole.items():
                    self.clipping.clip(name, arrays[name][0], rows, mask, self._names)
            self._measure(arrays, whole, mask)
            self.last = mask
            self.arrived(mask)

        return {name: Received(arrays[name], rows) for name, rows in whole.items()}, arrive

    def relay(self, table: Floats, fresh: Bools) -> tuple[Floats, Bools]:
        """Return the tables of the agent's sources, and a mask of their new rows; all of a table is sent."""
        flags = fresh.astype(np.float64)
        distance = self.distance
        rows, wait = self.exchange({"table": table, "fresh": flags}, lambda shape: False)
        if wait is not None:
            wait()
        self.distance = distance  # of models, not of tables
        return rows["table"].joined(), rows["fresh"].joined() > 0

    def first(self, values: Array) -> Array:
        """Return the values of the first site in alphabetical order, passed on along the links.

        A site that joins others in the middle of their training keeps its own: they no longer pass theirs on.
        """
        if any(peer.at > 0 for peer in self.rounds.hub.peers()):
            return values
        owner = self.block.agents.astype(np.float64)
        self.rounds.begin(0)
        for _ in range(self._parts.graph.diameter()):
            rows, wait = self.exchange({"start": values, "owner": owner}, lambda shape: False)
            if wait is not None:
                wait()
            owners = rows["owner"].joined()
            heard = self.last | (np.arange(len(owners)) == 0)
            best = int(np.argmin(np.where(heard, owners, np.inf)))
            values, owner = rows["start"].joined()[best : best + 1].copy(), owners[best : best + 1].copy()
        return values

    def everywhere(self, values: Array) -> Array:
        """Return the agent's own edges: it knows no others."""
        return values

    def join(self, state: Any) -> dict[str, Array]:
        """Return the state as named arrays, with the rounds that neighbours may still need."""
        arrays = super().join(state)
        for (k, turn), (specs, frames) in self.rounds.hub.posted().items():
            for place, (spec, frame) in enumerate(zip(specs, frames, strict=True)):
                array = np.frombuffer(frame, spec.dtype).reshape(spec.shape)
                arrays[_LOG + json.dumps([k, turn, place, spec.name])] = array
        return arrays

    def split(self, template: S, arrays: dict[str, Array]) -> S:
        """Return the state of a checkpoint, and take over the rounds in it."""
        posted: dict[tuple[int, int], tuple[tuple[Spec, ...], list[bytes]]] = {}
        for name, array in arrays.items():
            if name.startswith(_LOG):
                k, turn, _, word = json.loads(name.removeprefix(_LOG))
                specs, frames = posted.get((k, turn), ((), []))
                spec = Spec(word, array.dtype.str, array.shape)
                posted[k, turn] = (*specs, spec), [*frames, array.tobytes()]
        self.rounds.hub.restore(posted)
        return super().split(template, {name: array for name, array in arrays.items() if not name.startswith(_LOG)})

    def _measure(self, sent: Mapping[str, Array], whole: Mapping[str, Array], mask: Bools) -> None:
        name = max(sent, key=lambda word: sent[word].size)
        heard = whole[name][1:][mask[1:]]
        if len(heard):
            away = (heard - sent[name]).reshape(len(heard), -1)
            self.distance = float(np.sqrt(np.einsum("ij,ij->", away, away) / len(heard)))


def _discovered(given: Survey) -> Survey:
    """Return what a survey would find: sites have discovered the network before iteration 0."""
    return replace(given, rounds=given.graph.diameter())


class SiteNetwork(Network):
    """The network as one site sees it, if every message is waited for: to the bit that of a simulation.

    Args:
        graph: The whole network, with the sites' names as labels.
        weights: The initial weights.
        agent: The index of this site.
        rounds: The rounds with its neighbours.
        seed: The key of random draws.
        dtype: The precision of models.
    """

    repeatable = False
    share = 1.0  # the factor of the site's objective, if sites are weighed by their samples

    def __init__(
        self, graph: Digraph, weights: CSR, agent: int, rounds: Rounds, *, seed: int = 0, dtype: Any = np.float64
    ) -> None:
        self.halo: SiteHalo = SiteHalo(graph, agent, rounds)
        super().__init__(graph, weights, seed=seed, needs="in-neighbours", halo=self.halo, dtype=dtype)
        self.rounds = rounds

    def begin(self, k: int) -> int:
        """Begin an iteration."""
        return self.rounds.begin(k)

    def survey(self) -> Survey:
        """Return the network, which sites have discovered before iteration 0."""
        return _discovered(self.given)


class LossySiteNetwork(ConditionedNetwork):
    """The network as one site sees it, if some messages do not arrive in time: as :class:`d3gd.Conditions` simulates.

    Args:
        graph: The whole network, with the sites' names as labels.
        weights: The initial weights.
        agent: The index of this site.
        rounds: The rounds with its neighbours.
        seed: The key of random draws.
        dtype: The precision of models.
    """

    repeatable = False
    share = 1.0  # the factor of the site's objective, if sites are weighed by their samples

    def __init__(
        self, graph: Digraph, weights: CSR, agent: int, rounds: Rounds, *, seed: int = 0, dtype: Any = np.float64
    ) -> None:
        self.halo: SiteHalo = SiteHalo(graph, agent, rounds)
        super().__init__(graph, weights, Conditions(), seed=seed, needs="in-neighbours", halo=self.halo, dtype=dtype)
        self.rounds, self.halo.arrived, self._sends = rounds, self._note, ~self.loops

    def begin(self, k: int) -> int:
        """Begin an iteration, or a later one if others are further on: then this site has paused."""
        self._arrived = np.ones(len(self._to), dtype=bool)
        return self.rounds.begin(k)

    def survey(self) -> Survey:
        """Return the network, which sites have discovered before iteration 0."""
        return _discovered(self.given)

    def _note(self, mask: Bools) -> None:
        # Of a site that missed a round, the iteration's other rounds are not used either.
        self._arrived = self._arrived & mask[self._theirs]
