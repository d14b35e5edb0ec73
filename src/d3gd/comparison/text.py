"""A comparison in words and tables: for the terminal, Markdown, CSV and JSON."""

import csv
import html
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from d3gd.algorithms.base import Needs
from d3gd.comparison.numbers import shown, strict
from d3gd.comparison.scenario import amount
from d3gd.comparison.summary import Cost, Interval, Row, coverage, places
from d3gd.validation import one_line

if TYPE_CHECKING:
    from d3gd.comparison.result import Comparison

KNOWS: Mapping[str, str] = {
    "in-neighbours": "their in-neighbours and what these send",
    "out-degrees": "also the number of their out-neighbours, among which they split what they send",
    "undirected links": "that links are bidirectional, with symmetric weights",
    "the network": "the graph and the initial weights, at set-up",
    "all agents": "the values of all agents at every iteration: a baseline, not a decentralized method",
}
_FACTS = ("", "method", "knows", "step", "{metric}", "disagreement")
_COSTS = ("iterations", "gradients", "sent", "time")
_HEADER = (*_FACTS, *_COSTS, "numbers", "ms", "")
_NOTE = len(_HEADER) - 1
_IMPORTANCE = (0, 1, 4, 3, _NOTE, 2, 6, 8, 5, 9, 7, 10, 11)  # of columns, if a terminal is too narrow for all
_LATEX = {character: f"\\{character}" for character in "&%$#_{}"}
_LATEX |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "∞": r"$\infty$"}
_WIDE = 200  # characters, without a terminal
_RIGHT = (0, *range(3, _NOTE))


def header(comparison: "Comparison") -> list[str]:
    """Return the names of the table's columns."""
    return [name.format(metric=comparison.metric) for name in _HEADER]


def cells(row: Row) -> list[str]:
    """Return a row of the table, one line of text per column."""
    return [one_line(text) for text in _cells(row)]


def _cells(row: Row) -> list[str]:
    rank = "-" if row.rank is None else f"{row.rank}"
    if row.status not in ("ranked", "yardstick"):
        step = "" if np.isnan(row.step) else f"{row.step:g}"
        return [rank, row.method, row.needs, step, row.status, *[""] * (_NOTE - 5), row.note]
    low, median, high = row.value
    return [
        rank,
        row.method,
        row.needs,
        f"{row.step:g}",
        f"{shown(median)} [{shown(low)}, {shown(high)}]",
        shown(row.disagreement),
        *cost_cells(row.cost),
        f"{row.numbers:.0f}",
        f"{1e3 * row.pace:.2g}",
        "; ".join([*_ties(row), *([row.note] if row.note else [])]),
    ]


def _ties(row: Row) -> list[str]:
    return [f"ties with {', '.join(map(str, row.ties))}"] if row.ties else []


def cost_cells(cost: Cost) -> list[str]:
    """Format the cost of the target."""
    if not np.isfinite(cost.iterations):
        return ["never"] * len(_COSTS)
    return [f"{cost.iterations:.0f}", f"{cost.gradients:.0f}", amount(cost.bytes), duration(cost.seconds)]


def duration(seconds: float) -> str:
    """Format a duration.

    Example:
        >>> [duration(x) for x in (0.0123, 1.26, 340.0)]
        ['12 ms', '1.3 s', '340 s']
    """
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.0995 else f"{seconds:.2g} s" if seconds < 99 else f"{seconds:.0f} s"


def headline(comparison: "Comparison") -> str:
    """Return a sentence that names the best method for each kind of knowledge."""
    best: dict[str, Row] = {}
    for row in comparison.rows:
        if row.status in ("ranked", "yardstick"):
            best.setdefault(row.needs, row)
    if not best:
        return "No method reached the end of the budget."
    parts = []
    for needs in KNOWS:
        if needs in best:
            note = f" ({best[needs].note})" if best[needs].note else ""
            parts.append(f"{needs}: {best[needs].method} {shown(best[needs].value.median)}{note}")
    return f"Lowest {comparison.metric} by what agents must know. {'; '.join(parts)}."


def reading(comparison: "Comparison") -> list[str]:
    """Return sentences that explain the table; all figures in them are computed from the comparison."""
    c = comparison
    n = len(c.seeds)
    k = places(n)
    sentences = [
        f"{c.metric}: median over {n} seed{'s' * (n > 1)} ({_span(c.seeds)}) at the end of the budget, {c.budget}. "
        + (
            f"In brackets the {_ordinal(k)} and {_ordinal(n + 1 - k)} of the {n} ordered values: a distribution-free "
            f"confidence interval for the median, with {coverage(n, k):.0%} coverage."
            if n > 1
            else "One seed does not show how much that varies."
        ),
        "ties with: the intervals overlap, and neither method is better on every seed (of two equally good methods, "
        f"one is with probability {2.0 ** (1 - n):.2g}).",
        f"step: of one grid for all methods, the step with the smallest {c.tuned_by} on the worst of the seeds "
        f"{_span(c.tuning_seeds)}, none of them reported. {c.grid_text}",
        f"{', '.join(_COSTS)}: until {c.metric} reaches {shown(c.target)} and stays there, median over seeds; "
        f"{c.target_text} gradients are evaluations per agent, sent is over all links.",
        "numbers: sent per link and iteration. time and ms, the latter per iteration: of the processor, in one process "
        "on this machine, without set-up and metrics.",
    ]
    used = {row.needs for row in c.rows}
    sentences += [f"knows {needs}: agents know {KNOWS[needs]}." for needs in get_args(Needs) if needs in used]
    return [*sentences, *c.notes]


def markdown(comparison: "Comparison") -> str:
    """Return the whole report."""
    parts = [
        f"# {plain_markdown(comparison.title)}",
        plain_markdown(headline(comparison)),
        table_markdown(comparison, comparison.rows),
        "![The curves against iterations, bytes and processor time](curves.png)",
        "How to read it:",
        "\n".join(f"- {plain_markdown(sentence)}" for sentence in reading(comparison)),
    ]
    return "\n\n".join(parts) + "\n"


def table_markdown(comparison: "Comparison", rows: Sequence[Row]) -> str:
    """Return rows as a Markdown table."""
    rule = ["---:" if i in _RIGHT else "---" for i in range(len(_HEADER))]
    lines = [header(comparison), rule, *([plain_markdown(text) for text in cells(row)] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def plain_markdown(text: str) -> str:
    r"""Escape Markdown and HTML in a text.

    Example:
        >>> plain_markdown("a|b <i>")
        'a\\|b &lt;i&gt;'
    """
    safe = html.escape(one_line(text), quote=False)
    for character in "\\|*_`[":
        safe = safe.replace(character, f"\\{character}")
    return safe


def latex(comparison: "Comparison") -> str:
    """Return the table as a LaTeX ``tabular``, without the names of knowledge and the notes, which make it too wide."""
    kept = [i for i in range(_NOTE) if i != 2]
    rows = [header(comparison), *(cells(row) for row in comparison.rows)]
    return tabular([[row[i] for i in kept] for row in rows], "".join("r" if i in _RIGHT else "l" for i in kept))


def tabular(rows: Sequence[Sequence[str]], columns: str) -> str:
    """Return rows, the first of which is the header, as a LaTeX ``tabular``, which needs no package."""
    lines = [" & ".join(map(plain_latex, row)) + r" \\" for row in rows]
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", lines[0], r"\hline", *lines[1:], r"\hline", r"\end{tabular}"]
    return "\n".join(body) + "\n"


def plain_latex(text: str) -> str:
    r"""Escape LaTeX in a text; numbers such as 3e-7 become powers of ten.

    Example:
        >>> print(plain_latex("50 % of $x_i$, 3e-7"))
        50 \% of \$x\_i\$, $3\cdot10^{-7}$
    """
    safe = "".join(_LATEX.get(character, character) for character in one_line(text))
    return re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)e(-?\d+)(?!\w)", r"$\1\\cdot10^{\2}$", safe)


def table_csv(comparison: "Comparison") -> str:
    """Return the rows as CSV, with numbers in full precision."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    table = [flat(row) for row in comparison.rows]
    writer.writerow(table[0] if table else [])
    writer.writerows(row.values() for row in table)
    return text.getvalue()


def flat(row: Row) -> dict[str, Any]:
    """Return a row as a flat mapping for CSV and data frames; texts are single lines."""
    found: dict[str, Any] = {}
    for name, value in asdict(row).items():
        if isinstance(getattr(row, name), Interval | Cost):
            found |= {f"{name}_{part}": number for part, number in zip(getattr(row, name)._fields, value, strict=True)}
        elif name != "values":
            found[name] = " ".join(map(str, value)) if isinstance(value, tuple) else value
            found[name] = one_line(found[name]) if isinstance(found[name], str) else found[name]
    return {name: "" if value is None else value for name, value in found.items()}


def content(comparison: "Comparison") -> dict[str, Any]:
    """Return the content of ``compare.json``: strict JSON, with five digits per number."""
    return {
        "title": comparison.title,
        "headline": headline(comparison),
        "metric": comparison.metric,
        "tuned_by": comparison.tuned_by,
        "budget": asdict(comparison.budget),
        "seeds": list(comparison.seeds),
        "tuning_seeds": list(comparison.tuning_seeds),
        "target": strict(comparison.target),
        "coverage": coverage(len(comparison.seeds), places(len(comparison.seeds))),
        "jobs": comparison.jobs,
        "reading": reading(comparison),
        "versions": dict(comparison.versions),
        "rows": [_strict(asdict(row)) for row in comparison.rows],
        "markdown": {
            "header": header(comparison),
            "rows": [[plain_markdown(text) for text in cells(row)] for row in comparison.rows],
        },
    }


def _strict(value: Any) -> Any:
    if isinstance(value, Interval | Cost):
        return _strict(value._asdict())
    if isinstance(value, Mapping):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_strict(item) for item in value]
    return strict(value) if isinstance(value, float) else value


def show(comparison: "Comparison") -> None:
    """Print the table and how to read it."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=_WIDE, highlight=False)
    names = header(comparison)
    texts = [cells(row) for row in comparison.rows]
    widths = [max(len(line[i]) for line in [names, *texts]) + 2 for i in range(len(names))]
    kept = _fitting(widths, console.width)
    title = Text(one_line(comparison.title))
    table = Table(box=box.SIMPLE_HEAD, title=title, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for i in kept:
        justify: Any = "right" if i in _RIGHT else "left"
        table.add_column(Text(names[i]), justify=justify, no_wrap=True)
    for row, line in zip(comparison.rows, texts, strict=True):
        style = {"ranked": "bold" if row.rank == 1 else "", "yardstick": "italic"}.get(row.status, "red")
        table.add_row(*(Text(line[i]) for i in kept), style=style)
    console.print(table)
    console.print()
    if _NOTE not in kept:
        for line in texts:
            if line[_NOTE]:
                console.print(Text(f"{line[0]} {line[1]}: {line[_NOTE]}"))
        console.print()
    console.print(Text(one_line(headline(comparison))))
    for sentence in reading(comparison):
        console.print(Text(f"  {one_line(sentence)}", style="dim"))


def _fitting(widths: Sequence[int], room: int) -> list[int]:
    """Return the columns that fit, by importance; the method and its value always do."""
    kept: list[int] = []
    for i in _IMPORTANCE:
        if len(kept) < 3 or sum(widths[j] for j in kept) + widths[i] <= room:
            kept.append(i)
    return sorted(kept)


def _span(seeds: Sequence[int]) -> str:
    return f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"


def _ordinal(n: int) -> str:
    ending = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
