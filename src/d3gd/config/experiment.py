"""Experiments as TOML files.

The signatures of generators, weights, problems and algorithms are the schema: they define the keys of a table, their
types and defaults. To add a kind, add one line to :data:`KINDS`; algorithms are found in their package. Ranges are
checked by the functions that use the values; this module only adds the file and the table to their errors.
"""

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from d3gd import graphs, problems, reading, topologies, weights
from d3gd.algorithms import catalogue
from d3gd.arrays import Ints
from d3gd.conditions import Conditions
from d3gd.config import inputs, wrapping
from d3gd.config.schema import Keys, Table, checked, keys_of, prefixed, to_toml, unknown
from d3gd.config.toml import read_toml
from d3gd.engine import run
from d3gd.errors import ProblemError, RecordError, SettingsError, TransportError
from d3gd.privacy import Privacy
from d3gd.result import Result
from d3gd.runs import folder as layout
from d3gd.transports.alone import chosen
from d3gd.transports.base import Transport
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


@dataclass(frozen=True)
class Experiment:
    """An experiment as a settings file describes it, with keys and types checked.

    Attributes:
        path: The settings file.
        settings: The arguments of :func:`d3gd.run` outside any table.
        parts: The tables ``graph``, ``weights``, ``problem`` and ``algorithm``, and ``conditions`` and ``privacy`` if
            there are any.
    """

    path: Path
    settings: Table
    parts: Mapping[str, Table]

    @property
    def seed(self) -> int:
        """The experiment's seed; also that of graph and problem, unless they have their own."""
        return int(self.settings.get("seed", 0))

    def build(self) -> tuple[Any, graphs.Digraph, Any, Any]:
        """Return algorithm, graph, problem and weights."""
        algorithm = self._made("algorithm")
        graph, matrix = self.network()
        return algorithm, graph, self.problem(graph.n), matrix

    def problem(self, n: int) -> Any:
        """Return the problem of n agents."""
        return self._made("problem", agents=n, seed=self.seed)

    def part(self, agents: Ints, n: int) -> Any:
        """Return the problem of some of n agents; of all agents, if their data cannot be generated separately."""
        given = self.parts["problem"].get("agents", n)
        if given != n:
            raise ProblemError(
                f"{self.path.name}: the problem has {given} agents but the graph has {n}; make them equal"
            )
        return self._made("problem", agents=n, seed=self.seed, block=agents if len(agents) < n else None)

    def network(self) -> tuple[graphs.Digraph, Any]:
        """Return the graph and its initial weights."""
        graph = self._made("graph", seed=self.seed)
        return graph, self._made("weights", graph=graph)

    def conditions(self, graph: graphs.Digraph) -> Conditions | None:
        """Return the conditions of the network, if the file has any."""
        if "conditions" not in self.parts:
            return None
        with prefixed(f"{self.path.name}: [conditions]"):
            table = dict(checked(self.parts["conditions"], condition_keys(), ""))
            if table.get("graphs") is not None:
                table["graphs"] = [inputs.links_among(graph, str(self.path.parent / name)) for name in table["graphs"]]
            return Conditions(**table)

    def privacy(self) -> Privacy | None:
        """Return the settings of differential privacy, if the file has any."""
        return privacy_of(self.parts, self.path.name)

    def _made(self, part: str, **context: Any) -> Any:
        return make(part, self._resolved(self.parts[part]), self.path.name, **context)

    def run(
        self,
        out: str | Path,
        *,
        resume: bool = False,
        progress: bool | None = None,
        transport: Transport | None = None,
    ) -> Result:
        """Run the experiment and write results and a copy of the experiment to a folder; see :meth:`save`."""
        ranks = chosen(transport)
        with ranks.together():
            algorithm = self._made("algorithm")
            graph, matrix = self.network()
            conditions, privacy = self.conditions(graph), self.privacy()
        saved: list[bool] = []

        def keep(snapshot: object) -> None:
            # At the first record the folder is locked by this run, and nothing has been computed yet.
            if not saved and ranks.rank == 0:
                self.save(out)
                saved.append(True)

        with prefixed(f"{self.path.name}:", but=(RecordError, TransportError)):
            return run(
                algorithm,
                graph,
                lambda agents: self.part(agents, graph.n),
                weights=matrix,
                conditions=conditions,
                privacy=privacy,
                out=out,
                resume=resume,
                progress=progress,
                callbacks=[keep],
                transport=ranks,
                notes={"network": {name: dict(self.parts[name]) for name in ("graph", "weights")}},
                **self.settings,
            )

    def save(self, folder: str | Path) -> None:
        """Write a copy to a folder, with the files it names.

        The copy is independent of the original: the folder may move, and the user's files may change.
        """
        layout.write_experiment(Path(folder), *self._copy())

    def is_in(self, folder: Path) -> bool:
        """Whether a folder holds a copy of exactly this experiment, with the same files."""
        return layout.holds_experiment(folder, *self._copy())

    def _copy(self) -> tuple[str, dict[str, bytes]]:
        """Return the text of a copy, and the files that it names."""
        parts, inputs = dict(self.parts), dict[str, bytes]()

        def kept(file: str, name: str) -> str:
            original = self.path.parent / file
            copy = layout.input_name(f"{name}{original.suffix}")
            inputs[copy] = reading.content(original, "the file it was", limit=reading.ARRAYS)
            return copy

        for name, table in self.parts.items():
            if "file" in table:
                parts[name] = {**table, "file": kept(table["file"], name)}
            if "graphs" in table:
                parts[name] = {**table, "graphs": [kept(file, f"{name}{i}") for i, file in enumerate(table["graphs"])]}
        return dataclasses.replace(self, parts=parts).text, inputs

    @cached_property
    def text(self) -> str:
        """The experiment as TOML, including options of the command line."""
        settings = {key: value for key, value in self.settings.items() if not isinstance(value, Mapping)}
        tables = {key: value for key, value in self.settings.items() if isinstance(value, Mapping)} | dict(self.parts)
        blocks = [_lines(settings), *(f"[{name}]\n{_lines(table)}" for name, table in tables.items())]
        return "\n\n".join(blocks) + "\n"

    def _resolved(self, table: Table) -> Table:
        """Resolve the path of the table's file relative to the settings file."""
        return {**table, "file": str(self.path.parent / table["file"])} if "file" in table else table


def load(
    path: str | Path, *, optional: Collection[str] = (), changes: Table | None = None, **overrides: Any
) -> Experiment:
    """Read an experiment and check its keys and types.

    Args:
        path: The TOML file.
        optional: Tables and settings that the file may omit here although a run needs them.
        changes: Replacements by their dotted names, such as ``{"algorithm.step_size": 0.1}``.
        **overrides: Replacements for settings outside the tables; None keeps the file's.

    Returns:
        The experiment; nothing is built yet.
    """
    path = Path(path)
    where = path.name
    content = read_toml(path)
    layout.require_as_written(path)
    content |= {key: value for key, value in overrides.items() if value is not None}
    for name, value in (changes or {}).items():
        _put(content, name, value, where)
    content.setdefault("weights", _usual_weights(content.get("graph"), path.parent))
    parts: dict[str, Table] = {}
    for name in KINDS:
        if name in optional and name not in content:
            continue
        table = content.pop(name, None)
        if not isinstance(table, dict):
            found = "is missing" if table is None else f"is {shown(table)}, not a table"
            others = [key for key, value in content.items() if isinstance(value, dict)]
            for close in difflib.get_close_matches(name, others, n=1):
                found = f"is missing; did you mean it by [{close}]?"
            raise SettingsError(
                f"{where}: [{name}] {found}; write [{name}] and under it kind = ..., one of {', '.join(KINDS[name])}"
            )
        _check_part(name, table, where)
        parts[name] = table
    for name in _extras():
        if name in content:
            parts[name] = content.pop(name)
            _checked_extra(parts[name], name, where)
    tables = [f"[{name}]" for name in (*KINDS, *_extras())]
    return Experiment(path, checked(content, run_keys(), f"{where}:", optional=optional, also=tables), parts)


def make(part: str, table: Table, where: str, **context: Any) -> Any:
    """Build what a table describes.

    Args:
        part: ``"graph"``, ``"weights"``, ``"problem"`` or ``"algorithm"``.
        table: The kind and its arguments.
        where: The file of the table, for messages.
        **context: Arguments that the table may omit, passed if the kind accepts them.
    """
    arguments, around = _check_part(part, table, where, given=context)
    maker = KINDS[part][table["kind"]]
    taken = inspect.signature(maker).parameters
    with prefixed(f"{where}: [{part}]"):
        made = maker(**{key: value for key, value in context.items() if key in taken} | arguments)
        return wrapping.wrapped(made, around) if around else made


def _put(content: dict[str, Any], name: str, value: Any, where: str) -> None:
    """Set a setting by its dotted name; whether there is one of that name is checked with all others."""
    *tables, key = name.split(".")
    for table in tables:
        inner = content.get(table, {})
        if not isinstance(inner, dict):
            raise SettingsError(f"{where}: {shown(name)} is not known: {table} is {shown(inner)}, not a table")
        content[table] = inner = dict(inner)
        content = inner
    content[key] = value


def _usual_weights(graph: Any, folder: Path) -> Table:
    """Return the default weights: those in the graph's file of links, if any, or Metropolis weights."""
    file = graph.get("file") if isinstance(graph, dict) else None
    if isinstance(file, str) and inputs.has_weights(str(folder / file)):
        return {"kind": "edges", "file": file}
    return {"kind": "metropolis"}


def run_keys() -> Keys:
    """Return the keys of a file outside its tables."""
    keys = keys_of(run)
    names = ("iterations", "every", "seed", "target", "checkpoint_every", "dtype", "record_weights")
    return {name: keys[name] for name in names} | {"metrics": (list[str] | None, False)}  # in a file, by name only


def condition_keys() -> Keys:
    """Return the keys of the table of conditions."""
    return keys_of(Conditions) | {"graphs": (list[str] | None, False)}  # in a file, as files only


def privacy_of(parts: Mapping[str, Table], where: str) -> Privacy | None:
    """Return the settings of the table of privacy, if a file has one."""
    if "privacy" not in parts:
        return None
    given = _checked_extra(parts["privacy"], "privacy", where)
    with prefixed(f"{where}: [privacy]"):
        return Privacy(**given)


def _extras() -> dict[str, tuple[Keys, str]]:
    """Return the tables that a file may have without a kind: their keys, and an example of one."""
    return {"conditions": (condition_keys(), "loss = ..."), "privacy": (keys_of(Privacy), "clip = ... and noise = ...")}


def _checked_extra(table: Any, name: str, where: str) -> dict[str, Any]:
    keys, example = _extras()[name]
    if not isinstance(table, Mapping):
        raise SettingsError(f"{where}: [{name}] is {shown(table)}, not a table; write [{name}] and under it {example}")
    return checked(table, keys, f"{where}: [{name}]")


def _check_part(
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


def _lines(table: Table) -> str:
    return "\n".join(f"{key} = {to_toml(value)}" for key, value in table.items())
