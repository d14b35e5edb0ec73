"""The run of a site: the engine's loop and records, with one agent and what it hears."""

import math
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from d3gd.algorithms.base import Algorithm
from d3gd.arrays import CSR, Floats, Ints
from d3gd.distributed.parts import divided
from d3gd.distributed.traffic import Traffic
from d3gd.engine import execute
from d3gd.engine.checks import require_declared
from d3gd.engine.recorder import Recorder
from d3gd.engine.setup import Setup, runaway, starting_models
from d3gd.metrics import Metric, Snapshot
from d3gd.privacy import Privacy
from d3gd.privacy.ledger import Ledger
from d3gd.problems import Problem
from d3gd.result import Result
from d3gd.runs.folder import is_started, settings_in
from d3gd.sites.hub import BEAT
from d3gd.sites.network import LossySiteNetwork, SiteNetwork
from d3gd.sites.reload import rereading
from d3gd.sites.session import Session, joined
from d3gd.sites.settings import SiteFile
from d3gd.sites.status import Reporter

_CHECKPOINT = 32  # iterations between checkpoints: neighbours can repeat about twice as many
_FAREWELL = 60.0  # seconds that a finished site waits for listeners that may still need its last messages


@dataclass(frozen=True)
class SiteSetup(Setup):
    """A site's run that is ready to start."""

    @property
    def fixed(self) -> bool:  # type: ignore[override]
        """Sites come and go, unless every message is waited for."""
        return self.net.reliable

    def matrix(self, state: Any) -> CSR:
        """Return the weights in use, of this agent alone: one row."""
        from scipy.sparse import csr_array

        values = self.method.weights(self.net, state)
        graph = self.net.given.graph  # as it is by now
        sources = graph.sources[self.halo.block.edges]
        return csr_array((values, sources, np.array([0, len(sources)])), shape=(1, graph.n))

    def traffic(self, sent: Traffic) -> Ints | None:
        """Return nothing: the hub counts a site's messages, with their headers, by neighbour."""
        return None


class Weighed:
    """A site's objective times a factor, for steps; records show the objective itself.

    Args:
        problem: The objective.
        net: The network, whose share is the factor.
    """

    def __init__(self, problem: Any, net: Any) -> None:
        self.agents, self.dim, self._problem, self._net = problem.agents, problem.dim, problem, net

    def gradients(self, x: Floats, k: int | None = None) -> Floats:
        """Return the gradient."""
        gradients: Floats = self._net.share * self._problem.gradients(x, k)
        return gradients


def run(file: SiteFile, *, resume: bool = False, progress: bool | None = None) -> Result:
    """Run a site from its file, into its folder.

    Args:
        file: The site's file.
        resume: Whether to continue from the newest checkpoint.
        progress: Whether to show a progress bar; by default on a terminal only.
    """
    algorithm, privacy = file.algorithm(), file.privacy()
    file.require_data()
    with (
        nullcontext() if privacy is None else Ledger(file.ledger, privacy, resume=resume) as ledger,
        joined(file, algorithm) as session,
        Reporter(session, file.folder) as reporter,
        rereading(file, session),
    ):
        place = _place(session, resume)
        setup, start = _set_up(session, algorithm, place, privacy, ledger)
        session.hub.limit(setup.bound)
        own = file.settings
        settings = {
            **setup.describe(),
            "place": place,
            "iterations": own.iterations,
            "every": own.every,
            "seed": own.seed,
            "site": {"name": own.name, "session": own.session, "pace": own.pace, "patience": _json(own.patience)},
        }

        def follow(snapshot: Snapshot) -> None:
            settings["graph"] = session.rounds.edition.describe()

        recorder = Recorder(setup, {}, [reporter.record, follow])
        every = own.checkpoint_every or min(_CHECKPOINT, max(own.every, own.iterations // 20))
        result = execute(
            setup,
            [start],
            recorder,
            settings=settings,
            progress=progress,
            out=file.folder,
            checkpoint_every=every,
            resume=resume,
        )
        part(session, result.status)
    return result


def _place(session: Session, resume: bool) -> dict[str, int]:
    """Return which part of a problem that all sites share is this site's: it stays the same though others come."""
    folder, edition = session.file.folder, session.rounds.edition
    if resume and is_started(folder) and isinstance(known := settings_in(folder).get("place"), dict):
        return known
    late = session.rounds.joins
    return {"agent": len(edition.names) - 1 if late else edition.agent, "of": len(edition.names)}


def _set_up(
    session: Session,
    algorithm: Algorithm[Any],
    place: Mapping[str, int],
    privacy: Privacy | None,
    ledger: Ledger | None,
) -> tuple[Setup, Floats]:
    net = session.network()
    graph, weights = net.given.graph, net.given.graph.matrix(net.given.a0)
    require_declared(algorithm)
    net.permit(algorithm.needs)
    own = np.array([place["agent"]])
    part, whole = divided(lambda agents: session.file.problem(own, place["of"]), net.halo, graph.n)
    start = starting_models(graph.n, part, None, net.dtype)
    bound = runaway(start, net.dtype)
    metrics = site_metrics(session, net, part)
    if ledger is not None:
        part = ledger.private(part)
        metrics["epsilon"] = lambda s: ledger.epsilon()
    weighed = Weighed(part, net) if session.file.settings.samples else part
    made = algorithm, algorithm, net, graph, weights, weighed, whole, bound, None, "", metrics, privacy
    return SiteSetup(*made), start


def site_metrics(session: Session, net: SiteNetwork | LossySiteNetwork, problem: Any) -> dict[str, Metric]:
    """Return what a site records: it sees itself and what it hears."""
    rounds, hub, clipping = session.rounds, session.hub, net.halo.clipping

    def total(word: str) -> int:
        return sum(peer.counts[word] for peer in hub.peers())

    def own_loss(s: Snapshot) -> float:
        return float(problem.losses(s.x)[0])

    def accuracy(s: Snapshot) -> float:
        return float(s.accuracies[0])

    found: dict[str, Metric] = {}
    if not isinstance(problem, Problem) or problem.has_loss:
        found["loss"] = own_loss
    if isinstance(problem, Problem) and problem.accuracies(np.zeros((1, problem.dim))) is not None:
        found["accuracy"] = accuracy
    found |= {
        "distance": lambda s: net.halo.distance,
        "bytes": lambda s: total("bytes sent"),
        "bytes_received": lambda s: total("bytes received"),
        "waited": lambda s: rounds.waited,
        "missed": lambda s: rounds.missed,
        "dropped": lambda s: total("dropped"),
        **({} if clipping is None else {"clipped": lambda s: clipping.count}),
    }
    return found


def part(session: Session, status: str) -> None:
    """Say how the run has ended, and stay until listeners have what they need, within reason."""
    hub, waiting = session.hub, session.file.waiting
    hub.finish(status)
    if status == "diverged":
        hub.wait(lambda: False, 1.5 * BEAT)  # its messages are of no use, but others should know why they end
        return

    def served() -> bool:
        now = time.monotonic()
        listeners = [peer for peer in hub.peers() if peer.hears and peer.away(now) <= min(_FAREWELL, waiting.forget)]
        return all(peer.ended or peer.at >= session.file.settings.iterations for peer in listeners)

    hub.wait(served, math.inf if waiting.exact else _FAREWELL)


def _json(value: float) -> float | str:
    return value if math.isfinite(value) else "inf"
