"""How the verbs of a network are computed: in NumPy and SciPy where little is to be done, compiled where much is.

Loading the compiled kernels takes some tenths of a second, and compiling them, once per machine, some seconds. What
is small is therefore left to NumPy until it has been asked for often. Both give the same bits: they add up in the same
order, without fused multiply-adds, and the sigmoid's exponential is the C library's. Where SciPy was built otherwise,
with fused multiply-adds as on ARM or with another exponential, they agree to rounding; and since each process begins to
use them when it pays for it, ranks may then differ by as much. For large calls of the verbs it is the size of the whole
network that counts, so that there all ranks take the same way.
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
        return self.large(numbers) or self._done >= _AFTER or "d3gd.kernels.compiling" in sys.modules
