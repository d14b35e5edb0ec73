"""Progress of long computations: a bar on a terminal, lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Show: TypeAlias = Callable[[int, str], None]

_PARTS = 10  # number of lines without a terminal


@contextmanager
def progress_bar(wanted: bool | None, total: int, what: str = "") -> Iterator[Show]:
    """Yield a function that shows the amount done and a short text.

    Args:
        wanted: Whether to show anything; None shows a bar when standard error is a terminal, and nothing otherwise.
        total: The total amount.
        what: The name of the computation.
    """
    terminal = sys.stderr.isatty()
    if not (terminal if wanted is None else wanted):
        yield lambda done, text: None
    elif not terminal:
        yield _lines(total, what)
    else:
        yield from _bar(total, what)


def _lines(total: int, what: str) -> Show:
    """Return a function that prints a line at the start and after every tenth."""
    told = -1

    def show(done: int, text: str) -> None:
        nonlocal told
        part = _PARTS * done // max(1, total)
        if part > told:
            told = part
            share = f"{what}: {done} of {total} ({100 * done // max(1, total)} %)"
            print(f"{share}, {text}" if text else share, file=sys.stderr, flush=True)

    return show


def _bar(total: int, what: str) -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}", style="dim"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total, text="")
        yield lambda done, text: progress.update(task, completed=done, text=text)
