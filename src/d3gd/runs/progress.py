"""A progress bar for long work, shown only where somebody can see it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Show: TypeAlias = Callable[[int, str], None]


@contextmanager
def progress_bar(wanted: bool | None, total: int, what: str = "") -> Iterator[Show]:
    """Yield a function that shows how much is done and a short text.

    Args:
        wanted: Whether to show a bar; None shows it when standard error is a terminal.
        total: How much there is to do.
        what: What is being done.
    """
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield lambda done, text: None
        return
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
