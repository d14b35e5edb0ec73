"""What the commands of all studies share: their options, and how they end."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from d3gd.errors import D3GDError


def options(name: str, description: str, *, out: str) -> argparse.ArgumentParser:
    """Return a parser of the options that every study has.

    Args:
        name: What to type after ``python -m``.
        description: What the study does and writes.
        out: The default folder.
    """
    kept = "What has finished is kept: the same command continues."
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=f"{description} {kept}")
    parser.add_argument("--out", type=Path, default=Path(out), help="folder for runs, tables and figures")
    parser.add_argument("--jobs", type=int, help="processes; by default one per core")
    return parser


def ended(study: Callable[[], object], out: Path) -> int:
    """Run a study and return the exit code."""
    try:
        study()
    except D3GDError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"interrupted; {out} keeps what has finished; the same command continues", file=sys.stderr)
        return 130
    return 0
