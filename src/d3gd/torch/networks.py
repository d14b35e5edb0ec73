"""One agent per process: its network."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch

from d3gd import weights as weighting
from d3gd.arrays import CSR
from d3gd.digraph import require_graph
from d3gd.errors import SettingsError
from d3gd.graphs import Digraph
from d3gd.network import Network
from d3gd.torch.device import OneAgent
from d3gd.transports import Transport, connect
from d3gd.validation import count, one_of


def network(
    graph: Digraph,
    *,
    transport: Transport | None = None,
    weights: CSR | None = None,
    seed: int = 0,
    dtype: Literal["float64", "float32"] | None = None,
) -> Network:
    """Return this process's agent in a network of one agent per process.

    Args:
        graph: The network; strongly connected, one agent per process.
        transport: The processes, from ``d3gd.transports.connect()``; by default those of the launcher.
        weights: The initial weights; Metropolis weights by default.
        seed: The seed of the algorithm's random draws.
        dtype: The precision of models while they are mixed, and of messages; by default that of the parameters, or
            float32 if theirs is lower. Edge weights and Perron weights are always in double precision.

    Returns:
        The network to pass to :class:`DecentralizedOptimizer`; ``int(network.agents[0])`` is this process's agent.
    """
    if dtype is not None:
        one_of("dtype", dtype, ("float64", "float32"))
    ranks = transport or connect()
    ranks.require_same_versions()
    with ranks.together():
        require_graph(graph)
        if ranks.ranks != graph.n:
            raise SettingsError(
                f"{ranks.ranks} process{'es' * (ranks.ranks > 1)} for {graph.n} agents: an optimizer trains one agent; "
                f"start torchrun --nproc-per-node {graph.n}, or train all in one process with "
                "d3gd.problems.torch_module and d3gd.run"
            )
        graph.require_strongly_connected()
        matrix = weighting.metropolis(graph) if weights is None else weighting.check(weights, graph)
    kind = Following if dtype is None else OneAgent
    return kind(graph, matrix, seed=seed, needs="in-neighbours", transport=ranks, dtype=dtype or np.float64)


def sample_weight(samples: int, network: Network) -> float:
    """Return the factor for this agent's loss under which all samples of all agents count alike, in equal steps.

    Methods minimize the mean over agents, in which the samples of an agent with few of them count more if all take as
    many steps, as with :class:`KeyedBatches`. Within ``join``, an agent with few samples is done sooner, so that with
    equal batch sizes samples count alike without a factor. Collective: all processes call it.

    Args:
        samples: The number of samples that this agent has.
        network: This process's agent.
    """
    transport = network.halo.transport
    with transport.together():
        count("samples", samples, least=0)
    counts = transport.each(np.array(float(samples)))
    with transport.together():
        if not counts.any():
            raise SettingsError("no agent has samples; give each the number of its own")
    return float(samples / counts.mean())


class Following(OneAgent):
    """A network that adopts the precision of its model."""

    settled = False

    def follow(self, parameters: Sequence[torch.Tensor]) -> None:
        """Adopt the lowest supported precision that represents all parameters exactly."""
        double = any(parameter.dtype == torch.float64 for parameter in parameters)
        wanted = np.dtype(np.float64 if double else np.float32)
        if self.settled and self.dtype != wanted:
            raise SettingsError(
                f"the network already has a {self.dtype} model, and this one is {wanted}; create a network for each, "
                'or set the precision: d3gd.torch.network(..., dtype="float64")'
            )
        self.dtype, self.settled = wanted, True
