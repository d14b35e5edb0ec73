"""The computation of a network's operations: in NumPy and SciPy if they are small, compiled if large.

Loading the compiled kernels takes some tenths of a second, and compiling them, once per machine, some seconds. Small
operations are therefore left to NumPy until they add up. Both give bitwise equal results: they sum in the same order,
without fused multiply-adds, and the sigmoid's exponential is the C library's. If SciPy was built otherwise, with fused
multiply-adds as on ARM or with another exponential, they agree to rounding; since each process decides when to use the
compiled kernels, ranks may then differ by as much. Large operations depend on the size of the whole network, so that
all ranks choose the same kernels for them.
"""

import sys

_AT_ONCE = 1 << 18  # numbers per call: about half a millisecond in NumPy
_AFTER = 1 << 30  # numbers in total: about a second in NumPy


def loaded() -> bool:
    """Whether the compiled kernels are loaded, so that they cost nothing but a call."""
    return "d3gd.kernels.compiling" in sys.modules


class Meter:
    """Decides when to load the compiled kernels."""

    def __init__(self) -> None:
        self._done = 0

    def large(self, numbers: int) -> bool:
        """Return whether a call is large enough for kernels that only help large calls."""
        return numbers >= _AT_ONCE

    def compiled(self, numbers: int) -> bool:
        """Count the numbers of a call, and return whether to use kernels that also help small calls."""
        self._done += numbers
        return self.large(numbers) or self._done >= _AFTER or loaded()
