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
        description="Compare PerronD3GD with Di-DGD on many networks, data sets, batch sizes, step sizes and seeds. "
        "Writes a table of all cells (cells.csv), a report (study.md, study.json) and a heat map (study.png). "
        "Finished trials are kept: the same command continues after an interruption.",
    )
    parser.add_argument("--quick", action="store_true", help="four networks instead of all: minutes")
    parser.add_argument("--seeds", type=int, help="number of random draws for the medians (default: 5, quick 2)")
    parser.add_argument("--out", type=Path, default=Path("study"), help="folder for trials, tables and the figure")
    parser.add_argument("--jobs", type=int, help="processes; by default one per core")
    options = parser.parse_args(args)
    try:
        study(quick=options.quick, seeds=options.seeds, out=options.out, jobs=options.jobs, progress=True)
    except D3GDError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"interrupted; {options.out} keeps the finished trials; the same command continues", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
