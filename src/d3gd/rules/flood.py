"""A few numbers about every agent, passed on along the edges until all agents know all of them."""

from typing import NamedTuple

import numpy as np

from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.state import Flags, PerAgent


class Flood(NamedTuple):
    """What each agent has been told by each other, and what of it is news.

    A row crosses each edge once: an agent passes on, in the round after, what it hears for the first time. After as
    many rounds as the graph's diameter all tables are complete, and equal to the bit.
    """

    table: PerAgent  # (agents, n, r)  row l: what agent l told
    known: Flags  # (agents, n)        whose row has arrived, one's own included
    fresh: Flags  # (agents, n)        whose row is to be passed on


def no_flood(net: Network, length: int) -> Flood:
    """Return tables that hold nothing yet."""
    nobody = net.vectors().astype(bool)
    return Flood(np.zeros((*nobody.shape, length)), nobody, nobody)


def start(net: Network, rows: Floats) -> Flood:
    """Begin anew: every agent knows its own row only."""
    own = net.eye().astype(bool)
    return Flood(np.where(own[..., None], rows[:, None], 0.0), own, own)


def pass_on(net: Network, flood: Flood) -> Flood:
    """Send the news one hop further."""
    table, arrived = net.relay(flood.table, flood.fresh)
    news = arrived & ~flood.known
    return Flood(np.where(news[..., None], table, flood.table), flood.known | news, news)
