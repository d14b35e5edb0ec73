"""Sets of agents as bits, 64 to a number: an eighth of the memory of masks."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from d3gd.arrays import Bools

Bits: TypeAlias = npt.NDArray[np.uint64]


def pack(members: Bools) -> Bits:
    """Return sets from masks along the last axis.

    Example:
        >>> unpack(pack(np.array([True, False, True])), 3)
        array([ True, False,  True])
    """
    octets = np.packbits(members, axis=-1)
    spare = -octets.shape[-1] % 8
    padded = np.pad(octets, [(0, 0)] * (octets.ndim - 1) + [(0, spare)])
    return np.ascontiguousarray(padded).view(np.uint64)


def unpack(sets: Bits, n: int) -> Bools:
    """Return the masks of sets among ``n`` agents."""
    return np.unpackbits(np.ascontiguousarray(sets).view(np.uint8), axis=-1, count=n).view(bool)
