"""The study of logistic regression."""

import argparse
import sys
from pathlib import Path

from d3gd.runs.files import write_atomically
from d3gd.runs.outputs import claim
from studies import command
from studies.logistic import sample
from studies.logistic.plan import CELLS, ITERATIONS, SEEDS, comparison, problem, samples
from studies.logistic.report import DRAWN, PAGE, draw, written


def study(given: argparse.Namespace) -> None:
    """Compare the methods in every cell, and write the page."""
    out, own = given.out, given.data is not None
    if own:
        samples(given.data, given.sha256)  # refused, if need be, before there is a folder
    claim(out, "study of logistic regression", {"study": "logistic regression"})
    file = (given.data if own else sample.write(out)).resolve()  # other processes may have another working directory
    about = given.about if own else sample.ABOUT
    X, y = samples(file, given.sha256)
    how = {"iterations": given.iterations, "seeds": given.seeds, "jobs": given.jobs}
    found = {cell: comparison(cell, file, given.sha256, out, **how) for cell in CELLS[: given.cells]}
    for cell in found.keys() & set(DRAWN):
        draw(cell, found[cell], out)
    data = f"{about} {file.name}: {len(y):,} samples of {X.shape[1]} features, {y.mean():.0%} of class 1.".strip()
    within = max(problem(file, given.sha256, cell, seed).within for cell in found for seed in range(given.seeds))
    write_atomically(out / PAGE, written(found, data=data, within=within).encode())
    print(f"written to {out / PAGE}")


def main(args: list[str] | None = None) -> int:
    """Run the study and return an exit code."""
    parser = command.options(
        "studies.logistic",
        "Compare methods on logistic regression over 20 agents with label skew, each with its own tuned step size. "
        "Writes a page with tables and figures: loss gap to the optimum, bytes and time.",
        out="logistic",
    )
    parser.add_argument(
        "--data", type=Path, help="a file of two classes in LIBSVM's format, such as a9a; by default breast cancer data"
    )
    parser.add_argument("--sha256", help="the file's SHA-256, to be checked")
    parser.add_argument("--about", default="", help="a sentence about the data, for the page")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="random draws of split, network and batches")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help="of every run")
    parser.add_argument("--cells", type=int, default=len(CELLS), help="how many pairs of skew and batch size to run")
    given = parser.parse_args(args)
    return command.ended(lambda: study(given), given.out)


if __name__ == "__main__":
    sys.exit(main())
