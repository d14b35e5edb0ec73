"""Callbacks that also want to know when a run begins and ends."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from d3gd.engine.recorder import Callback
from d3gd.result import Result
from d3gd.transports.base import Transport


@contextmanager
def observed(
    callbacks: Sequence[Callback], settings: Mapping[str, Any], ranks: Transport
) -> Iterator[Callable[[Result], None]]:
    """Call ``begin(settings)`` and ``end(result)`` of the callbacks that have them, on rank 0.

    Yields:
        A function that takes the result. Without it, after an error, ``end`` gets None.
    """
    results: list[Result] = []
    with ExitStack() as begun:
        with ranks.together():
            for callback in callbacks if ranks.rank == 0 else ():
                _call(callback, "begin", settings)
                begun.callback(lambda end: end(results[0] if results else None), partial(_call, callback, "end"))
        yield results.append


def _call(callback: Callback, name: str, value: Any) -> None:
    function = getattr(callback, name, None)
    if callable(function):
        function(value)
