"""One page per method, from its docstring and the comparisons in docs/results/compare, and their index.

Numbers sent are counted in a run.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Any

import d3gd
from d3gd.algorithms import catalogue
from docs.scripts.docstrings import markdown, sections

DOCS = Path(__file__).parents[1]
FOLDER = DOCS / "methods"

WHEN = {
    "CHOCO": "On undirected networks, as the literature's method with compressed messages. `d3gd.Compressed` on an "
    "exact method ends at a stationary point for the same bytes.",
    "KGT": "On undirected networks with few exchanges, as the literature's method with local steps. `d3gd.Local` on "
    "`PerronD3GD` sends half as much, and runs on directed ones.",
    "MomentumTracking": "With momentum on undirected networks whose agents have different data. "
    "`PerronD3GD(momentum=0.9)` sends half as much, and runs on directed ones.",
    "ACGT": "On undirected networks with several links per agent, if bytes matter more than rounds: it tracks "
    "gradients for less than half of DIGing's bytes, [as measured](../results/topologies.md#ac-gt). `ExactDiffusion` "
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
    "`PerronD3GD(momentum=0.9)` is exact, with the same traffic.",
    "QGAdam": "With Adam on directed networks whose agents have different data, if twice the traffic of `PerronD3GD` "
    "is acceptable. Its limit is near a stationary point.",
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


@cache
def comparisons() -> list[tuple[str, dict[str, Any]]]:
    """Return the comparisons, each with a link to its page from that of a method."""
    files = sorted((DOCS / "results" / "compare").glob("*/compare.json"))
    return [
        (f"../{file.with_suffix('.md').relative_to(DOCS).as_posix()}", json.loads(file.read_text("utf-8")))
        for file in files
    ]


def compared(name: str, found: list[tuple[str, dict[str, Any]]]) -> str:
    """Return the rows of a method and of its variants, a table for each comparison that has any."""
    parts = []
    for link, content in found:
        rows = [row for row in content["markdown"]["rows"] if row[1].split()[0] == name]
        if rows:
            lines = [content["markdown"]["header"], ["---"] * len(rows[0]), *rows]
            table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
            about = f"{content['title']}, {len(content['seeds'])} seeds"
            links = f"[all methods]({link}), [how to read it](../howto/compare.md#how-to-read-the-table)"
            parts.append(f"On {about} ({links}):\n\n{table}")
    return "\n\n".join(parts)


def page(name: str, method: type[Any]) -> str:
    """Return a method's page."""
    text = sections(method)
    settings = re.sub(r"^(\w+): ", r"- `\1`: ", text["Args:"], flags=re.MULTILINE)
    facts = [
        ("agents must know", needs(method)),
        ("with a constant step and exact gradients, converges", ends(method)),
        ("[conditions](../howto/conditions.md) survived without bias", survives(method)),
        ("numbers per link and iteration", sent(method)),
        ("code", f"`{method.__module__}`"),
    ]
    rows = compared(name, comparisons())
    blocks = [
        f"# {name}",
        markdown(text[""]),
        "| | |\n|---|---|\n" + "\n".join(f"| {label} | {value} |" for label, value in facts),
        "## Settings",
        markdown(settings),
        "## When to use it",
        WHEN[name],
        *(["## In the comparison", rows] if rows else []),
        "## References",
        " ".join(text["References:"].split()),
    ]
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
        "[comparing methods](../howto/compare.md#how-to-read-the-table); which method to use, in the",
        "[README](../../README.md#which-method).",
        "",
        "`make pages` writes these pages from the docstrings and the comparisons.",
        "",
        "| method | agents must know | with a constant step, converges | numbers per link |",
        "|---|---|---|---|",
        *rows,
    ]
    return "\n".join(lines) + "\n"
