"""Run a command line and return an exit code."""

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import TextIO

import typer

from d3gd.cli.base import FAILED, INTERRUPTED, PIPE, USAGE, StoppedError, app
from d3gd.errors import D3GDError, PatienceWarning, printable


def main() -> None:
    """Run the command that the process was started with."""
    sys.exit(call(sys.argv[1:]))


def call(args: Sequence[str]) -> int:
    """Run a command and return its exit code; an error is one line on standard error.

    Args:
        args: The arguments after ``d3gd``. With ``--debug``, anywhere among them, errors keep their traceback.
    """
    debug = "--debug" in args
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        return _called(args, debug)


def _called(args: Sequence[str], debug: bool) -> int:
    words = [arg for arg in args if arg != "--debug"]
    if words in ([], *([group.name] for group in app.registered_groups)):
        words.append("--help")  # typer would raise the help as an error
    try:
        code = app(words, prog_name="d3gd", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        _hush()
        return PIPE
    except StoppedError as stop:
        return _say(str(stop), stop.code)
    except (D3GDError, typer.TyperException) as error:
        if debug:
            traceback.print_exc()
        return _say(f"error: {error if isinstance(error, D3GDError) else _usage(error, args)}", USAGE)
    except KeyboardInterrupt:  # before or after the command, which turns it into an exit code
        return _say("interrupted", INTERRUPTED)
    except MemoryError as error:
        return _say(f"error: out of memory ({error}); make the network or the data smaller", FAILED)
    except Exception as error:
        if debug:
            traceback.print_exc()
        kind = type(error).__name__
        return _say(f"error: {kind}: {error}; this should not happen, --debug shows where it came from", FAILED)
    if code == INTERRUPTED:
        return _say("interrupted", INTERRUPTED)
    return int(code or 0)


def _usage(error: typer.TyperException, args: Sequence[str]) -> str:
    commands = {command.callback.__name__ for command in app.registered_commands if command.callback}
    helping = ["d3gd", *[arg for arg in args if arg in commands][:1], "--help"]
    return f"{error.format_message().rstrip('.?')}; see: {' '.join(helping)}"


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print our own warnings alone, and others with their location."""
    ours = issubclass(category, PatienceWarning)
    _say(f"warning: {message}" if ours else warnings.formatwarning(message, category, filename, lineno), 0)


def _say(text: str, code: int) -> int:
    print(printable(" ".join(text.splitlines())), file=sys.stderr)
    return code


def _hush() -> None:
    """Discard pending output, so that Python can close a broken pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
