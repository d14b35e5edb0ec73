"""Write one page per method from its docstring, and their index: python docs/scripts/methods_pages.py.

What is between the two `comparison` comments of a page is kept. Numbers sent are counted in a run.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

import d3gd
from d3gd.algorithms import catalogue

FOLDER = Path(__file__).parents[1] / "methods"
_COMPARISON = re.compile(r"<!-- comparison -->\n.*?<!-- /comparison -->", re.DOTALL)
_EMPTY = "<!-- comparison -->\n<!-- /comparison -->"
_SECTIONS = ("Args:", "Example:", "References:")

WHEN = {
    "ACGT": "On undirected networks with several links per agent, if bytes matter more than rounds: it tracks "
    "gradients for less than half of DIGing's bytes, [as measured](../howto/topologies.md#ac-gt). `ExactDiffusion` "
    "needs fewer on some problems.",
    "Centralized": "Never on a network: it is the baseline, a method with perfect and free mixing.",
    "D3GD": "To reproduce the paper, or to study weights that adapt to data. `PerronD3GD` is better at the same task.",
    "DGD": "On undirected networks, if some bias is acceptable or the step size decays; the simplest method.",
    "DiDGD": "On directed networks whose agents know only their in-neighbours, if some bias is acceptable.",
    "DIGing": "On undirected networks, for exact convergence if traffic is cheap; with heavy-ball momentum if wanted.",
    "ExactDiffusion": "On undirected networks, nearly always: exact, with the traffic of DGD.",
    "EXTRA": "On undirected networks, as the classical baseline; exact diffusion does as well or better.",
    "FROST": "On directed networks without known out-degrees, for exact convergence at twice the traffic of Di-DGD.",
    "FRSD": "On directed networks whose agents know only their in-neighbours, for exact convergence with the traffic "
    "of Di-DGD; `gain` must suit the slowest mode of the network.",
    "PULMDGD": "On networks that change and whose agents know only their in-neighbours, if rounds are cheap, gradients "
    "expensive, and agents few.",
    "RFAST": "On unreliable networks with known out-degrees: exact under loss, delay, changing links and pauses.",
    "PerronD3GD": "On directed networks, nearly always: exact, with the traffic of Di-DGD or less.",
    "PushDIGing": "On directed networks with known out-degrees, for exact convergence; Push-Pull needs no mass.",
    "PushPull": "On directed networks with known out-degrees, for exact convergence.",
    "QGMomentum": "With momentum on directed networks whose agents have different data, as the literature does it. "
    "`d3gd.Local` with momentum on `PerronD3GD` is exact.",
    "SGP": "On directed networks with known out-degrees, if some bias is acceptable or the step size decays.",
}


def numbers_sent(algorithm: Any) -> str:
    """Return what a link carries per iteration, with d the length of a model and n the number of agents."""
    if algorithm.needs == "all agents":
        return "not counted, it sees all agents"

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
    """Return a fact about a method; if it depends on settings, each fact with the settings that imply it."""
    choices = list(catalogue.variants(method))
    found: dict[str, list[dict[str, Any]]] = {}
    for words in choices:
        found.setdefault(what(method(step_size=0.01, **words)), []).append(words)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{fact} ({', '.join(_implied(some, choices))})" for fact, some in found.items())


def _implied(some: list[dict[str, Any]], choices: list[dict[str, Any]]) -> list[str]:
    """Return the shortest combinations of settings that together single out some of all choices."""
    left, shown = some, []
    for size, words in product(range(1, len(choices[0]) + 1), some):
        for names in combinations(words, size):
            chosen = {name: words[name] for name in names}
            covered = [each for each in choices if chosen.items() <= each.items()]
            if all(each in some for each in covered) and any(each in left for each in covered):
                left = [each for each in left if each not in covered]
                shown.append("`" + ", ".join(f'{name}="{word}"' for name, word in chosen.items()) + "`")
    return shown


def needs(method: type[Any]) -> str:
    """Return what agents must know."""
    return _by_choice(method, lambda algorithm: algorithm.needs)


def survives(method: type[Any]) -> str:
    """Return the conditions under which it is unbiased."""
    return _by_choice(method, lambda algorithm: ", ".join(sorted(algorithm.survives)) or "none")


def ends(method: type[Any]) -> str:
    """Return where it converges with a constant step and exact gradients."""
    words = {True: "to a stationary point", False: "near a stationary point"}
    return _by_choice(method, lambda algorithm: words[algorithm.exact])


def sent(method: type[Any]) -> str:
    """Return the numbers that a link carries per iteration."""
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
            ("agents must know", needs(method)),
            ("with a constant step and exact gradients, converges", ends(method)),
            ("[conditions](../howto/conditions.md) survived without bias", survives(method)),
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
        "One page per method of `d3gd.algorithms`. The step size means the same for all: a step along the mean",
        "gradient. *Numbers per link* is what a link carries per iteration, with d the length of a model and n the",
        "number of agents, on a network where every message arrives. It includes neither surveys at the start nor the",
        "floods of PerronD3GD's planned rule; ACGT sends nothing on pruned links. *Agents must know* is explained in",
        "[compare.md](../howto/compare.md#how-to-read-the-table); which method to use, in the",
        "[README](../../README.md#which-method).",
        "",
        "`python docs/scripts/methods_pages.py` writes these pages from the docstrings, except what is between their",
        "`comparison` comments.",
        "",
        "| method | agents must know | with a constant step, converges | numbers per link |",
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
