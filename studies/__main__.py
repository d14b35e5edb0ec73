"""The study of PerronD3GD: ``make study``, or ``python -m studies --help``."""

import argparse
import sys
from pathlib import Path

from d3gd.errors import D3GDError
from studies.report import study


def main(args: list[str] | None = None) -> int:
    """Run the study and return an exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m studies",
        description="Compare PerronD3GD with other methods on many networks, data sets, batch sizes, step sizes and "
        "seeds, and where messages fail. Writes a report (study.md, study.json), a table of all cells (cells.csv) and "
        "two figures (study.png, loss.png). What has finished is kept: the same command continues.",
    )
    parser.add_argument("--quick", action="store_true", help="few networks and one seed: minutes")
    parser.add_argument("--so-far", action="store_true", help="run nothing, and report what has finished")
    parser.add_argument("--out", type=Path, default=Path("study"), help="folder for trials, tables and the figure")
    parser.add_argument("--jobs", type=int, help="processes; by default one per core")
    options = parser.parse_args(args)
    try:
        study(quick=options.quick, so_far=options.so_far, out=options.out, jobs=options.jobs, progress=True)
    except D3GDError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"interrupted; {options.out} keeps the finished trials; the same command continues", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
