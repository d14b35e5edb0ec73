"""Flooding: a short vector per agent is forwarded along the edges until all agents have all vectors."""

from typing import NamedTuple

import numpy as np

from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.state import Flags, PerAgent


class Flood(NamedTuple):
    """The rows of all agents that each agent has received, and those it has yet to forward.

    A row crosses each edge once: an agent forwards it in the round after its first arrival. After as many rounds as the
    graph's diameter all tables are complete and bitwise equal.
    """

    table: PerAgent  # (agents, n, r)  row l comes from agent l
    known: Flags  # (agents, n)        whose rows have arrived, including the agent's own
    fresh: Flags  # (agents, n)        whose rows are to be forwarded


def no_flood(net: Network, length: int) -> Flood:
    """Return empty tables."""
    nobody = net.vectors().astype(bool)
    return Flood(np.zeros((*nobody.shape, length)), nobody, nobody)


def start(net: Network, rows: Floats) -> Flood:
    """Start a flood: every agent knows only its own row."""
    own = net.eye().astype(bool)
    return Flood(np.where(own[..., None], rows[:, None], 0.0), own, own)


def pass_on(net: Network, flood: Flood) -> Flood:
    """Forward new rows by one hop."""
    table, arrived = net.relay(flood.table, flood.fresh)
    news = arrived & ~flood.known
    return Flood(np.where(news[..., None], table, flood.table), flood.known | news, news)
