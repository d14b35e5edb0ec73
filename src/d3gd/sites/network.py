"""One site's agent, with the operations that algorithms compute with: those of any other network."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from d3gd import weights as weighting
from d3gd.algorithms.around import resized
from d3gd.arrays import CSR, Array, Bools, Floats
from d3gd.conditions import Conditions
from d3gd.conditions.network import ConditionedNetwork
from d3gd.digraph import Digraph
from d3gd.distributed.halo import Halo
from d3gd.distributed.partition import partition
from d3gd.distributed.received import Received
from d3gd.distributed.survey import Survey
from d3gd.errors import SettingsError, TransportError
from d3gd.network import Network
from d3gd.sites.clipping import Clipping
from d3gd.sites.messages import Spec
from d3gd.sites.rounds import Rounds
from d3gd.transports.alone import Alone

S = TypeVar("S")

_LOG, _EDITION = "_posted.", "_edition"  # in a checkpoint: rounds that can be sent again; the state's network
_HELD = "_held."  # copies of compressed messages

log = logging.getLogger("d3gd.sites")


class SiteHalo(Halo):
    """The rows that a site exchanges with its neighbours.

    To the engine a site is a single process: nothing is collective, and what it gathers is its own.

    Args:
        graph: The whole network, with the sites' names as labels.
        agent: The index of this site.
        rounds: The rounds with its neighbours.
        clipping: Clips what is far from what this site sends itself, if it is not trusted.

    Attributes:
        arrived: Called with a mask of the received rows, its own first, after every round.
        last: A mask of the rows that arrived in the last round.
        distance: The root mean square of the distances between what it last sent and what it heard, by the largest
            array.
        models: The models that arrived in the last round, a row for each, or None.
        holds: The key of the network to which the state of the method belongs.
    """

    def __init__(self, graph: Digraph, agent: int, rounds: Rounds, clipping: Clipping | None) -> None:
        super().__init__(graph, Alone())
        self.block = partition(graph, graph.n).block(agent)
        self.rounds, self.clipping, self.holds = rounds, clipping, rounds.edition.key
        self.models: Array | None = None
        self.arrived: Callable[[Bools], None] = lambda mask: None
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
        collect, self.models = self.rounds.swap(arrays), None
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
            plain = {name: (arrays[name], rows) for name, rows in whole.items() if rows.dtype.kind == "f"}
            self._measure(plain, mask)
            if plain:
                first = next(iter(plain.values()))[1]  # what methods send first is a model
                self.models = first[1:][mask[1:]] if mask[1:].any() else None
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
        arrays = {**super().join(state), _EDITION: np.frombuffer(self.holds.encode(), np.uint8)}
        for (k, turn), (specs, frames) in self.rounds.hub.posted().items():
            for place, (spec, frame) in enumerate(zip(specs, frames, strict=True)):
                array = np.frombuffer(frame, spec.dtype).reshape(spec.shape)
                arrays[_LOG + json.dumps([k, turn, place, spec.name])] = array
        return arrays | {_HELD + name: rows for name, rows in self._copies.items()}

    def split(self, template: S, arrays: dict[str, Array]) -> S:
        """Return the state of a checkpoint, and take over the rounds in it."""
        posted: dict[tuple[int, int], tuple[tuple[Spec, ...], list[bytes]]] = {}
        for name, array in arrays.items():
            if name.startswith(_LOG):
                k, turn, _, word = json.loads(name.removeprefix(_LOG))
                specs, frames = posted.get((k, turn), ((), []))
                spec = Spec(word, array.dtype.str, array.shape)
                posted[k, turn] = (*specs, spec), [*frames, array.tobytes()]
        held = arrays[_EDITION].tobytes().decode() if _EDITION in arrays else self.holds
        if held == self.holds:
            self.rounds.hub.restore(posted)
        self.holds = held
        self._copies = {name.removeprefix(_HELD): rows for name, rows in arrays.items() if name.startswith(_HELD)}
        return super().split(template, {name: array for name, array in arrays.items() if not name.startswith("_")})

    def copies(self, held: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the copies that this site holds of what it hears: of the last iteration, or from its checkpoint."""
        if self.rounds.new:
            raise SettingsError(
                "messages are compressed differences to what was sent before, which a site that joins does not have; "
                "start all sites together, or drop compress"
            )
        if self.clipping is not None:
            raise SettingsError(
                'trust = "clip" bounds what a message says, and a compressed one says only what has changed; drop '
                'compress, or set trust = "all"'
            )
        if held.keys() - self._copies.keys():
            raise SettingsError(
                "this state was saved by an optimizer, without the copies of its neighbours' compressed messages; "
                "continue without compress, or with a run of d3gd site run --resume"
            )
        return self._copies

    def hold(self, copies: Mapping[str, Array]) -> dict[str, Array]:
        """Keep the copies of an iteration, and return those of its own messages."""
        self._copies = copies
        return {name: rows[:1] for name, rows in copies.items()}

    def decoded(self, rows: Mapping[str, tuple[Array, Array]]) -> None:
        """Measure the distance to what was heard, and raise an error if that is not sound."""
        for name, (_, copies) in rows.items():
            bad = np.flatnonzero(~(np.abs(copies).max(axis=1) <= self.rounds.hub.bound))
            if bad.size:
                raise TransportError(
                    f"what {self._names[bad[0]]} sent says that its {name!r} is not finite, or absurdly large, and "
                    "without it nothing goes on; see its log"
                )
        self._measure(rows, np.ones(len(self._names), dtype=bool))

    def _measure(self, rows: Mapping[str, tuple[Array, Array]], mask: Bools) -> None:
        if not rows:
            return
        sent, whole = max(rows.values(), key=lambda pair: pair[0].size)
        heard = whole[1:][mask[1:]]
        if len(heard):
            away = (heard - sent).reshape(len(heard), -1)
            self.distance = float(np.sqrt(np.einsum("ij,ij->", away, away) / len(heard)))


class _Agent(Network):
    """What both networks of sites share: they follow the network as sites come and go.

    Args:
        rounds: The rounds with the site's neighbours.
        weights: How the initial weights follow from the links.
        seed: The key of random draws.
        dtype: The precision of models.
        clipping: Clips what is far from what this site sends itself.

    Attributes:
        share: The factor of the site's objective, if sites are weighed by their samples.
    """

    repeatable = False
    halo: SiteHalo

    def __init__(
        self, rounds: Rounds, *, weights: str, seed: int = 0, dtype: Any = np.float64, clipping: Clipping | None = None
    ) -> None:
        self.rounds, self._edition = rounds, rounds.edition
        self._how: dict[str, Any] = {"weights": weights, "seed": seed, "dtype": dtype, "clipping": clipping}
        self.share = self._edition.share
        graph = self._edition.graph
        matrix: CSR = getattr(weighting, weights)(graph)
        halo = SiteHalo(graph, self._edition.agent, rounds, clipping)
        self._place_in(graph, matrix, seed=seed, needs="in-neighbours", halo=halo, dtype=dtype)

    def _place_in(self, graph: Digraph, weights: CSR, **how: Any) -> None:
        """Become an agent of a network."""
        raise NotImplementedError

    def begin(self, k: int) -> int:
        """Begin an iteration, or a later one if others are further on: then this site has paused."""
        k = self.rounds.begin(k)
        if self.rounds.edition is not self._edition:
            sent, needs = self.bytes_sent, self.needs
            holds, rounds, how = self.halo.holds, self.rounds, self._how
            vars(self).clear()
            self.__init__(rounds, **how)  # type: ignore[misc]
            self.traffic, self.needs = self.traffic._replace(elsewhere=sent, known=False), needs
            self.halo.holds = holds
        return k

    def renewed(self, algorithm: Any, state: Any) -> Any:
        """Return the state to go on with: if the network has changed, the method starts again from its models."""
        if self.halo.holds == self._edition.key:
            return state
        self.halo.holds = self._edition.key
        return algorithm.init(self, algorithm.point(state))

    def age(self, k: int) -> int:
        """Return the number of iterations since the last change of the network."""
        return max(0, k - self.rounds.since)

    def take(self, algorithm: Any, gradient: Any, state: Any, k: int) -> Any:
        """Take an iteration; methods count from the last change of the network, except their step sizes."""
        since = self.rounds.since
        if self.rounds.new:
            return self._listened(algorithm, state, self.age(k))
        if since and callable(size := getattr(algorithm, "step_size", None)):
            algorithm = resized(algorithm, lambda age: size(age + since))
        return algorithm.step(self, gradient, state, self.age(k))

    def survey(self) -> Survey:
        """Return the network, which sites have discovered before."""
        return replace(self.given, rounds=self.given.graph.diameter())

    def _listened(self, algorithm: Any, state: Any, k: int) -> Any:
        """Return the state of a new site: that of one that starts from the mean of the models that it hears, if any."""
        x = algorithm.point(state)
        algorithm.step(self, lambda x=x, *, draw=None: np.zeros_like(x), state, k)  # sends nothing, see Rounds.swap
        found = self.halo.models
        if found is None or found.shape[1:] != x.shape[1:]:
            return state
        self.rounds.new = False
        log.info("iteration %d: starting from the models of %d sites", self.rounds.hub.at, len(found))
        return algorithm.init(self, found.mean(axis=0, keepdims=True, dtype=x.dtype))


class SiteNetwork(_Agent):
    """The network as one site sees it, if every message is waited for: to the bit that of a simulation."""

    def _place_in(self, graph: Digraph, weights: CSR, **how: Any) -> None:
        Network.__init__(self, graph, weights, **how)


class LossySiteNetwork(_Agent, ConditionedNetwork):
    """The network as one site sees it, if some messages come too late: as :class:`d3gd.Conditions` simulates."""

    def _place_in(self, graph: Digraph, weights: CSR, **how: Any) -> None:
        ConditionedNetwork.__init__(self, graph, weights, Conditions(), **how)
        self.halo.arrived = self._note

    def begin(self, k: int) -> int:
        """Begin an iteration."""
        k = super().begin(k)
        self._arrived = np.ones(len(self._to), dtype=bool)
        return k

    def _note(self, mask: Bools) -> None:
        # Of a site that missed a round, the iteration's other rounds are not used either.
        self._arrived = self._arrived & mask[self._theirs]
