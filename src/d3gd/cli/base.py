# ruff: noqa: D301 - the \b that keeps typer from joining lines must be the character itself
"""The application, exit codes, and the error for interrupted commands."""

from typing import Annotated

import typer

from d3gd import __version__

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
DIVERGED, USAGE, FAILED, INTERRUPTED, PIPE, TERMINATED = 3, 2, 1, 130, 141, 143  # exit codes


class StoppedError(Exception):
    """Ctrl-C or SIGTERM, with a message and an exit code."""

    def __init__(self, text: str, code: int = INTERRUPTED) -> None:
        super().__init__(text)
        self.code = code


def _version(wanted: bool) -> None:
    if wanted:
        print(f"d3gd {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    """Decentralized learning on directed graphs with learned edge weights.

    \b
    Start here:
      d3gd reproduce             the paper's figures and claims, in about two minutes
      d3gd init                  write an example experiment,
      d3gd run experiment.toml   run it,
      d3gd plot runs/*           and plot it
      d3gd report runs/*         or watch it, in a browser
      d3gd compare --quick       find the best method for a network and a problem
      d3gd sweep --help          run an experiment with many settings and seeds
      d3gd site --help           train between hosts that start by themselves
    """
