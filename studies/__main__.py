"""The study of PerronD3GD: ``make study``, or ``python -m studies --help``."""

import sys

from studies import command
from studies.report import study


def main(args: list[str] | None = None) -> int:
    """Run the study and return an exit code."""
    parser = command.options(
        "studies",
        "Compare PerronD3GD with other methods on many networks, data sets, batch sizes, step sizes and seeds, and "
        "where messages fail. Writes a report (study.md, study.json), a table of all cells (cells.csv) and two figures "
        "(study.png, loss.png).",
        out="study",
    )
    parser.add_argument("--quick", action="store_true", help="few networks and one seed: minutes")
    parser.add_argument("--so-far", action="store_true", help="run nothing, and report what has finished")
    given = vars(parser.parse_args(args))
    return command.ended(lambda: study(**given, progress=True), given["out"])


if __name__ == "__main__":
    sys.exit(main())
