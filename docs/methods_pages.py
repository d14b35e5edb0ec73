"""Write one page per method from its docstring, and their index: python docs/methods_pages.py.

What stands between the two `comparison` comments of a page is kept. Numbers sent are counted, not claimed.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import d3gd
from d3gd.algorithms import catalogue

FOLDER = Path(__file__).parent / "methods"
_COMPARISON = re.compile(r"<!-- comparison -->\n.*?<!-- /comparison -->", re.DOTALL)
_EMPTY = "<!-- comparison -->\n<!-- /comparison -->"
_SECTIONS = ("Args:", "Example:", "References:")

WHEN = {
    "ACGT": "On undirected networks with several links an agent, to track gradients for about half of the bytes. Where "
    "[measured](../topologies.md#ac-gt), `ExactDiffusion` spent fewer still.",
    "Centralized": "Never on a network: it is the yardstick, what a method would do if mixing were perfect and free.",
    "D3GD": "To reproduce the paper, or to study weights that follow the data. `PerronD3GD` does the same job better.",
    "DGD": "On undirected networks, when some bias does not matter or steps fall anyway; the simplest there is.",
    "DiDGD": "On directed networks where agents know nothing but whom they hear, when a bias does not matter.",
    "DIGing": "On undirected networks, for exact answers where traffic is cheap; with a heavy ball if need be.",
    "ExactDiffusion": "On undirected networks, nearly always: exact, with the traffic of DGD.",
    "EXTRA": "On undirected networks, where exact diffusion would do as well; it is the classic to compare with.",
    "FROST": "On directed networks without out-degrees, for exact answers, where twice the traffic is no matter.",
    "PerronD3GD": "On directed networks, nearly always: exact, with the traffic of Di-DGD or less.",
    "PushDIGing": "On directed networks with known out-degrees, for exact answers; Push-Pull needs no mass.",
    "PushPull": "On directed networks with known out-degrees, for exact answers.",
    "SGP": "On directed networks with known out-degrees, when a bias does not matter or steps fall anyway.",
}


def numbers_sent(algorithm: Any) -> str:
    """Return what a link carries an iteration, with d the length of a model and n the number of agents."""
    if algorithm.needs == "all agents":
        return "not counted: it sees all agents"

    if isinstance(algorithm, d3gd.ACGT) and algorithm.prune > 0:  # what it spares depends on the network
        return f"at most {numbers_sent(replace(algorithm, prune=0.0))}"
    # From the 20th iteration to the 40th: past the first, and between two plans. Or that many cycles.
    window = 20 * getattr(algorithm, "cycle", 1)

    def carried(n: int, d: int) -> float:
        graph = d3gd.graphs.complete(n)
        problem = d3gd.problems.quadratic(agents=n, dim=d)
        run = d3gd.run(algorithm, graph, problem, iterations=2 * window, every=window, metrics=["bytes"])
        seen = run.metrics["bytes"]
        return float(seen[2] - seen[1]) / (8 * window * graph.link_count)

    per_d = carried(4, 64) - carried(4, 63)
    per_n = carried(5, 64) - carried(4, 64)
    rest = carried(4, 64) - 64 * per_d - 4 * per_n
    terms = [(per_d, "d"), (per_n, "n"), (rest, "")]
    shown = [
        f"{'' if value == 1 and name else f'{value:.3g}'} {name}".strip() for value, name in terms if abs(value) > 1e-9
    ]
    return " + ".join(shown)


def _by_choice(method: type[Any], what: Callable[[Any], str]) -> str:
    """Return a fact, or one per choice if it depends on choices, and then on as few of them as will do."""
    choices = [words for words in catalogue.variants(method) if "auto" not in words.values()]
    facts = [what(method(step_size=0.01, **words)) for words in choices]
    for size in range(len(choices[0]) + 1):
        for names in combinations(choices[0], size):
            found: dict[tuple[str, ...], set[str]] = {}
            for words, fact in zip(choices, facts, strict=True):
                found.setdefault(tuple(words[name] for name in names), set()).add(fact)
            if all(len(values) == 1 for values in found.values()):
                shown: dict[str, list[str]] = {}
                for words_chosen, values in found.items():
                    choice = ", ".join(f'{name}="{word}"' for name, word in zip(names, words_chosen, strict=True))
                    shown.setdefault(values.pop(), []).append(f"`{choice}`")
                if len(shown) == 1:
                    return next(iter(shown))
                return "; ".join(f"{fact} ({', '.join(where)})" for fact, where in shown.items())
    raise AssertionError("all choices together decide")


def needs(method: type[Any]) -> str:
    """Return what agents must know."""
    return _by_choice(method, lambda algorithm: algorithm.needs)


def survives(method: type[Any]) -> str:
    """Return what the network may do."""
    return _by_choice(
        method, lambda algorithm: ", ".join(sorted(algorithm.survives)) or "nothing beyond a fixed network"
    )


def ends(method: type[Any]) -> str:
    """Return where it ends with a constant step and exact gradients."""
    words = {True: "at a stationary point", False: "near a stationary point"}
    return _by_choice(method, lambda algorithm: words[algorithm.exact])


def sent(method: type[Any]) -> str:
    """Return the numbers a link carries an iteration."""
    return _by_choice(method, numbers_sent)


def _markdown(text: str) -> str:
    """Return a docstring's text as Markdown: its displays and inline formulas between dollars."""
    text = re.sub(r"\.\. math:: (.+)", r"$$\1$$", text)

    def display(match: re.Match[str]) -> str:
        body = inspect.cleandoc(match.group(1))
        aligned = f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}" if "&" in body else body
        return f"$$\n{aligned}\n$$\n"

    text = re.sub(r"\.\. math::\n((?:    .+\n?)+)", display, text)
    text = re.sub(r'^(``"\w+"``)\n    ', r"- \1: ", text, flags=re.MULTILINE)
    text = re.sub(r":math:`([^`]+)`", lambda match: f"${' '.join(match.group(1).split())}$", text)
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


def parts(method: type[Any]) -> dict[str, str]:
    """Return a docstring's sections; what comes first has no name."""
    doc = inspect.getdoc(method) or ""
    pieces = re.split(rf"^({'|'.join(_SECTIONS)})\n", doc, flags=re.MULTILINE)
    named = zip(pieces[1::2], pieces[2::2], strict=True)
    return {"": pieces[0].strip(), **{name: inspect.cleandoc(text) for name, text in named}}


def page(name: str, method: type[Any], old: str = "") -> str:
    """Return a method's page; ``old`` is the one it replaces."""
    text = parts(method)
    kept = _COMPARISON.search(old)
    settings = re.sub(r"^(\w+): ", r"- `\1`: ", text["Args:"], flags=re.MULTILINE)
    blocks = [
        f"# {name}",
        _markdown(text[""]),
        "| | |\n|---|---|",
        "## Settings",
        _markdown(settings),
        "## When to use it",
        WHEN[name],
        "## In the comparison",
        kept.group() if kept else _EMPTY,
        "## References",
        " ".join(text["References:"].split()),
    ]
    table = "\n".join(
        f"| {label} | {value} |"
        for label, value in [
            ("agents need to know", needs(method)),
            ("with a constant step and exact gradients it ends", ends(method)),
            ("survives without bias", survives(method)),
            ("numbers per link and iteration", sent(method)),
            ("code", f"`{method.__module__}`"),
        ]
    )
    blocks[2] += "\n" + table
    return "\n\n".join(blocks) + "\n"


def index() -> str:
    """Return the table of all methods."""
    rows = [
        f"| [{name}]({name}.md) | {needs(method)} | {ends(method)} | {sent(method)} |"
        for name, method in catalogue.methods().items()
    ]
    lines = [
        "# Methods",
        "",
        "Every method of `d3gd.algorithms`, with a page of its own. In all of them a step size means the same: a step",
        "along the mean gradient. A link carries so many numbers an iteration, with d numbers in a model and n agents;",
        "for PerronD3GD that is while weights are learned, and floods of plans come on top. ACGT is silent on",
        "links that it prunes. What agents must know",
        "is explained in `d3gd.algorithms.base`. Pages are written from the docstrings by",
        "`python docs/methods_pages.py`, all but what stands between their `comparison` comments.",
        "",
        "| method | agents need to know | ends | numbers per link |",
        "|---|---|---|---|",
        *rows,
    ]
    return "\n".join(lines) + "\n"


def write() -> None:
    """Write all pages."""
    FOLDER.mkdir(exist_ok=True)
    for name, method in catalogue.methods().items():
        path = FOLDER / f"{name}.md"
        path.write_text(page(name, method, path.read_text(encoding="utf-8") if path.exists() else ""), encoding="utf-8")
    (FOLDER / "README.md").write_text(index(), encoding="utf-8")


if __name__ == "__main__":
    with np.errstate(all="ignore"):
        write()
