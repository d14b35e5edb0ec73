"""Output of the commands."""

import inspect
import json
import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.arrays import CSR
from d3gd.config.schema import keys_of
from d3gd.config.tables import KINDS
from d3gd.digraph import Digraph
from d3gd.errors import D3GDError, printable
from d3gd.result import Result
from d3gd.weights import perron, spectral_gap

_DIAMETER_UP_TO = 2000  # agents; it takes a search from each


def show_result(result: Result, folder: Path, experiment: Path) -> None:
    """Print the outcome of a run and the next commands."""
    show_outcome(result, folder)
    if result.status == "diverged":
        print(printable(f"       {_smaller_step(result.settings['algorithm'], experiment)}"))
        return
    seed = str(int(result.settings["seed"]) + 1)
    print(printable(f"       {shlex.join(['d3gd', 'run', str(experiment), '--seed', seed])}"))


def show_outcome(result: Result, folder: Path) -> None:
    """Print the outcome of a run."""
    table = _table("", "at the start", "at the end")
    for name, values in result.metrics.items():
        if values.ndim == 1:
            table.add_row(_plain(name), _number(values[0]), _number(values[-1]))
    kind, last = result.settings["algorithm"]["kind"], int(result.iterations[-1])
    colour = "red" if result.status == "diverged" else "green"
    console = _console()
    message = _plain(f": {result.message}") if result.message else ""
    line = f"{kind} [{colour}]{result.status}[/] at iteration {last} in {result.seconds:.1f} s{message}"
    console.print(line, soft_wrap=True)
    console.print(table)
    print(printable(f"wrote {folder}"))
    print(printable(f"next:  {shlex.join(['d3gd', 'plot', str(folder)])}"))


def _smaller_step(algorithm: dict[str, Any], experiment: Path) -> str:
    """Return advice after divergence."""
    step = algorithm.get("step_size")
    tenth = f"step_size = {step / 10:.3g}" if isinstance(step, (int, float)) else "a smaller step_size"
    return f"set {tenth} under [algorithm] in {experiment}, and run it into another folder (--out)"


def show_kinds() -> None:
    """Print the kinds of networks with their keys."""
    table = _table("kind", "keys", "")
    for kind, maker in KINDS["graph"].items():
        keys = [f"--{key}" if required else f"[--{key}]" for key, (_, required) in keys_of(maker).items()]
        sentence = (inspect.getdoc(maker) or "").splitlines()[0].replace("``", "")
        if kind != "edges":
            table.add_row(kind, _plain(" ".join(keys)), _plain(sentence.removeprefix("Return ")))
    table.add_row("your own", _plain("--edges FILE.csv [--n]"), "the links in a file with the columns source,target.")
    _console().print(table)
    print("\nexample:  d3gd graph erdos_renyi --n 20 --p 0.6 --seed 0")


def show_network(graph: Digraph, weights: CSR, kind: str, *, as_json: bool) -> None:
    """Print the properties of a network and its weights."""
    facts = network_facts(graph, weights, kind)
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    table = _table("", "", "")
    n, links = facts["n"], facts["links"]
    table.add_row("agents", f"{n:,}", "")
    table.add_row("links", f"{links:,}", f"{100 * links / max(1, n * (n - 1)):.3g} % of all possible links")
    for name, meaning in (("hears", "others, per agent: min, mean, max"), ("heard_by", "")):
        degrees = facts[name]
        table.add_row(name.replace("_", " "), f"{degrees['min']}  {degrees['mean']:.4g}  {degrees['max']}", meaning)
    if facts["strongly_connected"]:
        table.add_row("strongly connected", "yes", "there is a path from every agent to every other")
        searched = (
            "the most hops between two agents" if n <= _DIAMETER_UP_TO else f"only up to {_DIAMETER_UP_TO:,} agents"
        )
        table.add_row("diameter", _number(facts["diameter"]), searched)
        table.add_row("spectral gap", _number(facts["spectral_gap"]), _mixing(facts["spectral_gap"]))
        meaning = f"extremes of the Perron vector of {kind} weights; both are 1 if agents have equal influence"
        table.add_row("n min π, n max π", f"{_number(facts['n_min_pi'])}  {_number(facts['n_max_pi'])}", meaning)
    else:
        table.add_row("strongly connected", "[red]no[/]", "")
    _console().print(table)
    if facts["note"]:
        print(f"\nnote: {printable(facts['note'])}")


def network_facts(graph: Digraph, weights: CSR, kind: str) -> dict[str, Any]:
    """Return the output of ``d3gd graph --json``; undefined or too costly values are None."""
    connected = graph.is_strongly_connected
    facts: dict[str, Any] = {
        "n": graph.n,
        "links": graph.link_count,
        "hears": _spread(graph.in_degrees),
        "heard_by": _spread(graph.out_degrees),
        "strongly_connected": connected,
        "diameter": graph.diameter() if connected and graph.n <= _DIAMETER_UP_TO else None,
        "weights": kind,
        "spectral_gap": None,
        "n_min_pi": None,
        "n_max_pi": None,
        "note": "",
    }
    try:
        graph.require_strongly_connected()
        pi = perron(weights)
        facts |= {"n_min_pi": float(graph.n * pi.min()), "n_max_pi": float(graph.n * pi.max())}
        facts |= {"spectral_gap": spectral_gap(weights)}
    except D3GDError as error:
        facts["note"] = str(error)
    return facts


def _spread(degrees: Any) -> dict[str, float]:
    return {"min": int(degrees.min()), "mean": float(degrees.mean()), "max": int(degrees.max())}


def _mixing(gap: float | None) -> str:
    if gap is None or not 0 < gap < 1:
        return "1 - |second eigenvalue|"
    rounds = math.log(10) / -math.log1p(-gap)
    return f"distances between models shrink tenfold in about {max(1, round(rounds)):,} rounds of mixing"


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, (int, np.integer)) else f"{value:.4g}"


def _plain(text: str) -> str:
    from rich.markup import escape

    return str(escape(printable(text)))


def _table(*columns: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_header=any(columns), pad_edge=False, show_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, style=("bold", "", "dim")[i] if not any(columns) else "")
    return table


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False)
