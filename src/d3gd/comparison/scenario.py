"""The scenario of a comparison: network and problem of each seed, and the budget."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from d3gd import weights as weighting
from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.compressed import Compressed
from d3gd.algorithms.identity import identify
from d3gd.arrays import CSR
from d3gd.conditions import Conditions, require_conditions
from d3gd.config.experiment import Experiment
from d3gd.digest import digest
from d3gd.digraph import require_graph
from d3gd.errors import SettingsError
from d3gd.graphs import Digraph
from d3gd.problems import Problem
from d3gd.problems.checks import require_problem
from d3gd.validation import count, function

_TITLED = ("graph", "weights", "problem", "conditions")  # the tables of a file that define the scenario


class Case(NamedTuple):
    """The network, weights, problem and conditions of a seed."""

    graph: Digraph
    weights: CSR
    problem: Any
    conditions: Conditions | None = None
    dtype: Literal["float64", "float32"] = "float64"

    @property
    def width(self) -> int:
        """Bytes per number."""
        return np.dtype(self.dtype).itemsize

    @property
    def message(self) -> int:
        """Bytes of one model sent along every link."""
        return self.width * int(self.problem.dim) * self.graph.link_count

    def fingerprint(self) -> str:
        """Return a digest of the case."""
        known = isinstance(self.problem, Problem)
        problem = self.problem.fingerprint() if known else identify(self.problem).digest
        conditions = None if self.conditions is None else self.conditions.describe()
        return digest(self.graph.indptr, self.graph.sources, self.weights.data, problem, conditions, self.dtype)


class Scenario(Protocol):
    """A network and a problem for every seed."""

    def case(self, seed: int) -> Case:
        """Return the case of a seed."""

    @property
    def title(self) -> str:
        """A short description."""


@dataclass(frozen=True)
class Given:
    """A scenario from arguments: graph and problem are equal for all seeds, or functions of the seed."""

    graph: Digraph | Callable[[int], Digraph]
    problem: Any
    weights: CSR | Callable[[Digraph], CSR] | None = None
    conditions: Conditions | None = None

    def __post_init__(self) -> None:
        if callable(self.graph):
            function("graph", self.graph, "the seed")
        if self._draws_problem:
            function("problem", self.problem, "the seed")
        if callable(self.weights):
            function("weights", self.weights, "the graph")
        require_conditions(self.conditions)

    def case(self, seed: int) -> Case:
        """Call functions of the seed; compute weights from the graph."""
        graph = self.graph(seed) if callable(self.graph) else self.graph
        require_graph(graph)
        made = self.weights(graph) if callable(self.weights) else self.weights
        weights = weighting.metropolis(graph) if made is None else weighting.check(made, graph)
        problem = self.problem(seed) if self._draws_problem else self.problem
        require_problem(problem)
        return Case(graph, weights, problem, self.conditions)

    @property
    def _draws_problem(self) -> bool:
        return callable(self.problem) and not isinstance(self.problem, Problem)

    @property
    def title(self) -> str:
        """The size of the network, the kind of problem, and the conditions."""
        case = self.case(0)
        conditions = {} if self.conditions is None else self.conditions.describe()
        parts = [f"{case.graph.n} agents", f"{case.graph.link_count} links", type(case.problem).__name__]
        return ", ".join([*parts, *filter(None, [_in_words(conditions)])])


@dataclass(frozen=True)
class FromFile:
    """A scenario from a settings file: tables without a seed use that of the case."""

    experiment: Experiment

    def __post_init__(self) -> None:
        if "privacy" in self.experiment.parts:
            raise SettingsError(
                f"{self.experiment.path.name} has a table [privacy], which comparisons do not know; leave it out, or "
                "compare runs of d3gd run"
            )

    def case(self, seed: int) -> Case:
        """Draw with the seed."""
        drawn = replace(self.experiment, settings={**self.experiment.settings, "seed": seed})
        graph, weights = drawn.network()
        dtype = self.experiment.settings.get("dtype", "float64")
        return Case(graph, weights, drawn.problem(graph.n), drawn.conditions(graph), dtype)

    @property
    def title(self) -> str:
        """The tables, in a line."""
        tables = {name: self.experiment.parts.get(name, {}) for name in _TITLED}
        words = {name: _in_words(table) for name, table in tables.items()}
        of_file = "file" in tables["weights"]
        words["weights"] = f"weights of {tables['weights']['file']}" if of_file else f"{words['weights']} weights"
        return ", ".join(filter(None, words.values()))


def _in_words(table: Mapping[str, Any]) -> str:
    """Return a table in a line; graphs and absences by their number."""
    words = [str(table["kind"])] if "kind" in table else []
    words += [f"of {table['file']}"] if "file" in table else []
    for key, value in table.items():
        if key not in ("kind", "file", "biased"):
            many = key in ("graphs", "absences") and isinstance(value, list)
            words.append(f"{len(value)} {key[: -1 if len(value) == 1 else None]}" if many else f"{key}={value}")
    return " ".join(words)


@dataclass(frozen=True)
class Budget:
    """The budget of every run; a run ends when the first limit is reached.

    Attributes:
        iterations: Limit on iterations.
        bytes: Limit on bytes over all links. No run has more iterations than one that sends its model and nothing else.
        gradients: Limit on evaluations per agent. No run has more iterations than one that evaluates one gradient in
            each.
    """

    iterations: int | None = None
    bytes: int | None = None
    gradients: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is None:
                continue
            object.__setattr__(self, name, count(f"budget of {name}", value, least=1))
        if all(value is None for value in asdict(self).values()):
            raise SettingsError("no budget was found; give iterations, budget_bytes or budget_gradients")

    @property
    def limits(self) -> dict[str, int]:
        """The limits other than iterations, by the metric that records them."""
        limits = {"bytes": self.bytes, "gradients": self.gradients}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def most(self, case: Case, algorithm: Algorithm[Any] | None = None) -> int:
        """Return the largest number of iterations of a run, of a method that may compress its messages."""
        message = case.message
        if isinstance(algorithm, Compressed):
            message = case.graph.link_count * algorithm.row_bytes(case.problem.dim)
        if self.bytes is not None and self.bytes < case.message:
            raise SettingsError(
                f"a budget of {self.bytes:,} bytes does not suffice for one iteration: a model along each of the "
                f"{case.graph.link_count:,} links takes {case.message:,} bytes; give at least ten times that"
            )
        bought = [self.iterations, None if self.bytes is None else self.bytes // message, self.gradients]
        return min(count for count in bought if count is not None)

    def __str__(self) -> str:
        parts = [] if self.iterations is None else [f"{self.iterations:,} iterations"]
        parts += [] if self.bytes is None else [f"{amount(self.bytes)} over all links"]
        parts += [] if self.gradients is None else [f"{self.gradients:,} gradients per agent"]
        return " or ".join(parts)


def amount(count: float) -> str:
    """Format a number of bytes.

    Example:
        >>> [amount(x) for x in (900, 12_345, 4.75e7, 3e9)]
        ['900 B', '12 kB', '48 MB', '3 GB']
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{float(f'{count / size:.2g}'):g} {unit}"
    return f"{count:.0f} B"
