"""Experiments as TOML files."""

import dataclasses
import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from d3gd import graphs, reading
from d3gd.arrays import Ints
from d3gd.conditions import Conditions
from d3gd.config import inputs
from d3gd.config.schema import Keys, Table, checked, keys_of, prefixed, to_toml
from d3gd.config.tables import KINDS, check_part, checked_extra, condition_keys, extras, make, privacy_of
from d3gd.config.toml import read_toml
from d3gd.engine import run
from d3gd.errors import ProblemError, RecordError, SettingsError, TransportError
from d3gd.privacy import Privacy
from d3gd.result import Result
from d3gd.runs import folder as layout
from d3gd.transports.alone import chosen
from d3gd.transports.base import Transport
from d3gd.validation import shown


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
        check_part(name, table, where)
        parts[name] = table
    for name in extras():
        if name in content:
            parts[name] = content.pop(name)
            checked_extra(parts[name], name, where)
    tables = [f"[{name}]" for name in (*KINDS, *extras())]
    return Experiment(path, checked(content, run_keys(), f"{where}:", optional=optional, also=tables), parts)


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


def _lines(table: Table) -> str:
    return "\n".join(f"{key} = {to_toml(value)}" for key, value in table.items())
