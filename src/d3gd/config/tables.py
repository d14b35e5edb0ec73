"""The tables of settings files: their kinds, their keys, and what they build.

The signatures of generators, weights, problems and algorithms are the schema: they define the keys of a table, their
types and defaults. To add a kind, add one line to :data:`KINDS`; algorithms are found in their package. Ranges are
checked by the functions that use the values; this module only adds the file and the table to their errors.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from d3gd import graphs, problems, topologies, weights
from d3gd.algorithms import catalogue
from d3gd.conditions import Conditions
from d3gd.config import inputs, wrapping
from d3gd.config.schema import Keys, Table, checked, keys_of, prefixed, unknown
from d3gd.errors import SettingsError
from d3gd.privacy import Privacy
from d3gd.validation import shown

KINDS: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "graph": {
        "erdos_renyi": graphs.erdos_renyi,
        "ring": graphs.ring,
        "exponential": graphs.exponential,
        "grid": graphs.grid,
        "random_geometric": graphs.random_geometric,
        "regular": graphs.regular,
        "complete": graphs.complete,
        "star": graphs.star,
        "edges": inputs.edges,
    },
    "weights": {
        "metropolis": weights.metropolis,
        "uniform": weights.uniform,
        "lazy": weights.lazy,
        "balanced": weights.balanced,
        "fast_mixing": topologies.fast_mixing,
        "fastest_mixing": topologies.fastest_mixing,
        "file": inputs.weights_file,
        "edges": inputs.edge_weights,
    },
    "problem": {
        "sigmoid_classification": problems.sigmoid_classification,
        "digits_classification": problems.digits_classification,
        "quadratic": problems.quadratic,
        "softmax": inputs.softmax_table,
        "mixture_classification": problems.mixture_classification,
    },
    "algorithm": catalogue.methods(),
}


def make(part: str, table: Table, where: str, **context: Any) -> Any:
    """Build what a table describes.

    Args:
        part: ``"graph"``, ``"weights"``, ``"problem"`` or ``"algorithm"``.
        table: The kind and its arguments.
        where: The file of the table, for messages.
        **context: Arguments that the table may omit, passed if the kind accepts them.
    """
    arguments, around = check_part(part, table, where, given=context)
    maker = KINDS[part][table["kind"]]
    taken = inspect.signature(maker).parameters
    with prefixed(f"{where}: [{part}]"):
        made = maker(**{key: value for key, value in context.items() if key in taken} | arguments)
        return wrapping.wrapped(made, around) if around else made


def check_part(
    part: str, table: Table, where: str, given: Table | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of the kind, and for an algorithm those of what is around it."""
    kinds = KINDS[part]
    where = f"{where}: [{part}]"
    if "kind" not in table:
        raise SettingsError(f"{where} kind is missing; choose from {', '.join(kinds)}")
    if not isinstance(table["kind"], str) or table["kind"] not in kinds:
        raise unknown(f"{where} kind", str(table["kind"]), list(kinds))
    rest: Table = {key: value for key, value in table.items() if key != "kind"}
    around: dict[str, Any] = {}
    also: list[str] = []
    if part == "algorithm":
        rest, around = wrapping.separated(rest, where)
        also = [*wrapping.KEYS, "optimizer"]
    keys = keys_of(kinds[table["kind"]])
    return checked(rest, keys, where, optional={"agents", *(given or {})}, also=also), around


def extras() -> dict[str, tuple[Keys, str]]:
    """Return the tables that a file may have without a kind: their keys, and an example of one."""
    return {"conditions": (condition_keys(), "loss = ..."), "privacy": (keys_of(Privacy), "clip = ... and noise = ...")}


def checked_extra(table: Any, name: str, where: str) -> dict[str, Any]:
    """Return the arguments of such a table."""
    keys, example = extras()[name]
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where}: [{name}] is {shown(table)}, not a table; write [{name}] and under it {example}")
    return checked(table, keys, f"{where}: [{name}]")


def condition_keys() -> Keys:
    """Return the keys of the table of conditions."""
    return keys_of(Conditions) | {"graphs": (list[str] | None, False)}  # in a file, as files only


def privacy_of(parts: Mapping[str, Table], where: str) -> Privacy | None:
    """Return the settings of the table of privacy, if a file has one."""
    if "privacy" not in parts:
        return None
    given = checked_extra(parts["privacy"], "privacy", where)
    with prefixed(f"{where}: [privacy]"):
        return Privacy(**given)
