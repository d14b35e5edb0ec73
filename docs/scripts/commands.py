"""The reference of commands, from the functions that typer makes commands of."""

from collections.abc import Iterator
from typing import Any

import typer

from d3gd import cli

_START = """# Commands

Every command with its arguments and options, as `--help` prints them.
[Commands and settings files](../tutorial/commands.md) shows them at work; `make pages` writes this page from the code.

An error is one line that says what was found and what is allowed; `d3gd --debug ...` shows where it came from.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | a run of a sweep failed, or a test of `d3gd doctor`; otherwise a defect of d3gd |
| 2 | invalid input |
| 3 | the run diverged |
| 130, 143 | stopped by Ctrl-C, by SIGTERM |"""


def found() -> Iterator[tuple[str, Any]]:
    """Yield every command with its name."""
    yield from _below("d3gd", typer.main.get_command(cli.app))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for word, each in inner.items():
        yield from _below(f"{name} {word}", each)


def page() -> str:
    """Return the page."""
    whole = typer.main.get_command(cli.app)
    blocks = [_START, _options("d3gd", whole)]
    for name, command in found():
        about, examples = _parts(command.help)
        blocks += [f"## {name}", about, _options(name, command), examples]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _parts(text: str) -> tuple[str, str]:
    """Return what a command does, and its examples as a block of code."""
    about, _, rest = text.partition("\b\n")
    lines = [line.strip() for line in rest.replace("\b", "").splitlines()[1:] if line.strip()]
    return about.strip(), "```text\n" + "\n".join(lines) + "\n```" if lines else ""


def _options(name: str, command: Any) -> str:
    """Return the arguments and options of a command as a table."""
    context = typer.Context(command, info_name=name)
    rows = [record for parameter in command.params if (record := parameter.get_help_record(context)) is not None]
    if not rows:
        return ""
    return "\n".join(["| | |", "|---|---|", *(f"| `{_cell(left)}` | {_cell(right)} |" for left, right in rows)])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
