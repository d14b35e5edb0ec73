# ruff: noqa: D301 - the \b that keeps typer from joining lines must be the character itself
"""Properties of networks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from d3gd.cli.base import app
from d3gd.errors import SettingsError


@app.command(context_settings={"ignore_unknown_options": True})
def graph(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="KIND|FILE.toml", help="A kind with its --key value pairs, or an experiment."),
    ] = None,
    edges: Annotated[Path | None, typer.Option(help="A CSV file with the columns source,target[,weight].")] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="metropolis, uniform, lazy, balanced, fast_mixing, fastest_mixing, or edges: the column weight of a "
            "file of links. "
            "[default: that column if there is one, else metropolis]"
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
) -> None:
    """Describe a network and its mixing.

    Prints its links and degrees, whether it is strongly connected, its diameter, spectral gap and Perron vector.
    Without arguments, list the kinds of networks and their keys.

    \b
    Examples:
      d3gd graph
      d3gd graph erdos_renyi --n 20 --p 0.6 --seed 0
      d3gd graph grid --rows 4 --columns 5 --torus
      d3gd graph ring --n 50 --weights lazy --json
      d3gd graph --edges links.csv
      d3gd graph experiment.toml
    """
    from d3gd.cli import screens
    from d3gd.config.experiment import load
    from d3gd.config.inputs import has_weights
    from d3gd.config.tables import make

    names, keys = _named_and_keyed(words or [])
    if edges is not None:
        names, keys = [*names, "edges"], {**keys, "file": str(edges)}
    if not names and not keys:
        screens.show_kinds()
        return
    if len(names) != 1:
        found = ", ".join(names) or "none"
        raise SettingsError(f"found {found}: give one kind of network, or one file; d3gd graph lists the kinds")
    (name,) = names
    if name.endswith(".toml"):
        if keys:
            raise SettingsError(f"--{next(iter(keys))} cannot be combined with {name}; change the file instead")
        plan = load(name, optional=("algorithm", "iterations"), weights=weights and {"kind": weights})
        (network, matrix), kind = plan.network(), plan.parts["weights"]["kind"]
    else:
        kind = weights or ("edges" if edges is not None and has_weights(str(edges)) else "metropolis")
        network = make("graph", {"kind": name, **keys}, "d3gd graph")
        file = {"file": str(edges)} if kind == "edges" and edges is not None else {}
        matrix = make("weights", {"kind": kind, **file}, "d3gd graph", graph=network)
    screens.show_network(network, matrix, kind, as_json=json)


def _named_and_keyed(words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Divide words into names and ``--key value`` pairs, with values parsed as in a settings file."""
    from d3gd.config.toml import value_of

    names: list[str] = []
    keys: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            names.append(word)
            continue
        key, equals, value = word[2:].partition("=")
        if not equals:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else "true"
        keys[key.replace("-", "_")] = value_of(value)
    return names, keys
