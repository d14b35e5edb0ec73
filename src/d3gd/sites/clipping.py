"""A bound on what one neighbour can do to a model."""

import logging
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from d3gd.arrays import Array, Bools

log = logging.getLogger("d3gd.sites")

Trust: TypeAlias = Literal["all", "clip"]

_TIMES = 3.0  # the median distance: what a neighbour with other data may differ by
_REMEMBERED = 200  # distances of the past that the median is taken of


class Clipping:
    r"""Clips the difference between what a neighbour sends and what this site sends itself.

    .. math::
        x_j \leftarrow x_i + \min\Bigl(1, \frac{3\,m}{\|x_j - x_i\|}\Bigr) (x_j - x_i),

    where m is the median of the last distances of all neighbours, those of this round included. What is clipped counts
    as clipped for the median, so that a neighbour cannot raise it quickly.

    Attributes:
        count: What was clipped so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._past: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_REMEMBERED))
        self._told: set[str] = set()

    def clip(self, name: str, own: Array, rows: Array, mask: Bools, sites: Sequence[str]) -> None:
        """Clip received rows in place.

        Args:
            name: The array's name; each has distances of its own.
            own: What this site sent.
            rows: All rows, the site's own first.
            mask: The rows that arrived.
            sites: The names of the senders of the rows.
        """
        past, places = self._past[name], np.flatnonzero(mask)[1:].tolist()
        if not places:
            return
        distances = [float(np.linalg.norm(rows[place] - own)) for place in places]
        limit = _TIMES * float(np.median([*past, *distances]))
        for place, distance in zip(places, distances, strict=True):
            if distance > limit:
                rows[place] = own + (limit / distance) * (rows[place] - own)
                self.count += 1
                if sites[place] not in self._told:
                    self._told.add(sites[place])
                    log.warning("%s: %r is %.3g from the own one; clipped to %.3g", sites[place], name, distance, limit)
            past.append(min(distance, limit))
