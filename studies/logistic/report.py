"""The study of logistic regression on a page; every number is computed from the comparisons."""

from collections.abc import Mapping
from pathlib import Path

from d3gd.comparison import text
from d3gd.comparison.numbers import shown
from d3gd.comparison.result import Comparison
from d3gd.plots import write_figure
from studies.logistic.plan import CELLS, NETWORK, REGULARIZATION, Cell
from studies.markdown import table
from studies.settings import CENTRAL, DEFAULT

PAGE, DRAWN = "logistic.md", CELLS[:2]


def written(found: Mapping[Cell, Comparison], *, data: str, within: float) -> str:
    """Return the page.

    Args:
        found: The comparison of every cell.
        data: The data set in words.
        within: Bound on the error of the optimal loss.
    """
    one = next(iter(found.values()))
    best = {cell: next(row for row in c.rows if row.rank == 1) for cell, c in found.items()}
    parts = [
        "# Logistic regression",
        f"{data} Logistic regression of two classes with {REGULARIZATION:g}/2 times the squared norm, on directed "
        f"networks drawn anew for each seed: {NETWORK}. Label skew: class proportions of every agent drawn from "
        "Dirichlet(alpha).",
        f"*Loss gap* is the mean over agents of F(x_i) - min F; the minimum is known to within {shown(within)}. "
        f"*{CENTRAL}* is gradient descent on all data in one place: with mini-batches, on those of all agents. "
        "`python -m studies.logistic --data FILE --out DIR` makes such a page from any file of two classes in LIBSVM's "
        "format.",
        f"Lowest loss gap after {one.budget}, median over {len(one.seeds)} seeds: "
        + "; ".join(f"{row.method} {shown(row.value.median)} ({cell})" for cell, row in best.items())
        + ".",
    ]
    for cell, comparison in found.items():
        figure = f"![Loss gap against iterations, bytes and time]({_picture(cell)})" if cell in DRAWN else ""
        parts += [f"## {str(cell).capitalize()}", cells_of(comparison), _behind(comparison), figure]
    parts += ["## How to read it", "\n".join(f"- {_gap(sentence)}" for sentence in text.reading(one))]
    return "\n\n".join(part for part in parts if part) + "\n"


def cells_of(comparison: Comparison) -> str:
    """Return the table of a comparison; all methods evaluate one gradient per iteration."""
    lines = [text.header(comparison), *(text.cells(row) for row in comparison.rows)]
    left_out = lines[0].index("gradients")
    header, *rows = ([text.plain_markdown(cell) for i, cell in enumerate(line) if i != left_out] for line in lines)
    return table([_gap(name) for name in header], rows)


def _behind(comparison: Comparison) -> str:
    """Say where PerronD3GD ends, compared with all data in one place."""
    own, central = comparison.row(DEFAULT), comparison.row(CENTRAL)
    if own.rank is None or central.status != "yardstick":
        return ""
    return (
        f"{DEFAULT} ends at {shown(own.value.median / central.value.median)} times the gap of all data in one place, "
        f"with the step {own.step:g} where that takes {central.step:g}."
    )


def _gap(sentence: str) -> str:
    """Return a sentence about the metric by its name here."""
    return sentence.replace("loss", "loss gap")


def draw(cell: Cell, comparison: Comparison, out: Path) -> None:
    """Draw the curves of a cell."""
    figure = comparison.plot()
    figure.suptitle(str(cell), fontsize=10)
    figure.axes[0].set_ylabel(r"loss gap  $F(x_i) - \min F$")
    write_figure(figure, out / _picture(cell))


def _picture(cell: Cell) -> str:
    return f"{cell.folder}.png"
