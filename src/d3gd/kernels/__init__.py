"""How the verbs of a network are computed: in NumPy and SciPy where little is to be done, compiled where much is.

Loading the compiled kernels takes some tenths of a second, and compiling them, once per machine, some seconds. What
is small is therefore left to NumPy until it has been asked for often. Both give the same bits: they add up in the same
order, without fused multiply-adds (where SciPy was built with those, as on ARM, mixing agrees to rounding). Besides,
it is the size of the whole network that counts, not of a block of agents, so that all ranks take the same way.
"""

import sys

_AT_ONCE = 1 << 18  # numbers that a call touches: NumPy needs about half a millisecond for them
_AFTER = 1 << 30  # numbers that calls have touched in all: about a second


class Meter:
    """Tells when it pays to load the compiled kernels."""

    def __init__(self) -> None:
        self._done = 0

    def large(self, numbers: int) -> bool:
        """Return whether so many numbers are enough for kernels that pay in large calls only."""
        return numbers >= _AT_ONCE

    def compiled(self, numbers: int) -> bool:
        """Return whether to use kernels that also pay in small calls, now that so many more numbers are asked for."""
        self._done += numbers
        return self.large(numbers) or self._done >= _AFTER or "d3gd.kernels.compiled" in sys.modules
