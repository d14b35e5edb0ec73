"""What a sweep runs: every combination of some settings' values, with every seed."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from d3gd import engine
from d3gd.config.experiment import Experiment, load
from d3gd.config.schema import to_toml
from d3gd.config.toml import read_toml, value_of
from d3gd.digest import digest
from d3gd.errors import RecordError, SettingsError
from d3gd.result import Result
from d3gd.runs import folder as layout
from d3gd.validation import listed, mapping, shown

_READABLE = 80  # characters of a folder's name
_PLAIN = re.compile(r"[\w.=,+-]+", re.ASCII)


@dataclass(frozen=True)
class Point:
    """One run of a sweep.

    Attributes:
        values: The value of every setting that is swept.
        seed: The seed of all random draws.
    """

    values: Mapping[str, Any]
    seed: int

    @property
    def name(self) -> str:
        """The point in words."""
        return ", ".join([*(f"{key}={text_of(value)}" for key, value in self.values.items()), f"seed {self.seed}"])

    @property
    def place(self) -> Path:
        """The folder of the run, relative to that of the sweep."""
        told = ",".join(f"{key}={text_of(value)}" for key, value in self.values.items())
        if told and not (_PLAIN.fullmatch(told) and len(told) <= _READABLE):
            told = f"{'-'.join(_PLAIN.findall(told))[:_READABLE]}-{digest(told)[:6]}"
        return Path("runs") / told / f"seed-{self.seed}"


class Task(Protocol):
    """A run that can take place in another process."""

    def run(self, folder: Path) -> Result:
        """Run it into a folder, or continue it there."""

    def is_in(self, folder: Path) -> bool:
        """Whether a folder holds this run, finished, so that nothing is left to do; raises if it holds another."""


@dataclass(frozen=True)
class FromFile:
    """A run of a settings file with some settings changed."""

    experiment: Experiment

    def run(self, folder: Path) -> Result:
        """See :class:`Task`."""
        return self.experiment.run(folder, resume=True, progress=False)

    def is_in(self, folder: Path) -> bool:
        """See :class:`Task`."""
        copy = layout.experiment_in(folder)
        if copy is None or self.experiment.is_in(folder):
            return copy is not None
        there = read_toml(copy).get("iterations")
        settings = {**self.experiment.settings, "iterations": there}
        if replace(self.experiment, settings=settings).is_in(folder):
            return False  # the same run, but longer or shorter
        raise RecordError(
            f"{folder} is a run of another experiment: settings or files other than those swept have changed; choose "
            "another folder (--out)"
        )


@dataclass(frozen=True)
class FromFunction:
    """A run whose parts a user's function makes; whether a folder holds it shows when it is continued."""

    make: Callable[..., Any]
    point: Point

    def run(self, folder: Path) -> Result:
        """See :class:`Task`."""
        made = self.make(**self.point.values, seed=self.point.seed)
        if not isinstance(made, Mapping):
            raise SettingsError(
                f"the function returned {shown(made)}; return the arguments of d3gd.run, such as "
                '{"algorithm": ..., "graph": ..., "problem": ..., "iterations": 100}'
            )
        return engine.run(**{"seed": self.point.seed, **made, "progress": False, "out": folder, "resume": True})

    def is_in(self, folder: Path) -> bool:
        """See :class:`Task`."""
        return False


def swept(settings: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    """Return the values of every setting, each once, or raise an error if there are none."""
    found: dict[str, tuple[Any, ...]] = {}
    for name, values in mapping("settings", settings, "names to lists of values").items():
        if not isinstance(name, str) or not name:
            raise SettingsError(f"a setting cannot be called {shown(name)}; give a name, such as 'algorithm.step_size'")
        if name == "seed":
            raise SettingsError("the seed is not swept as a setting; give seeds= (--seeds) instead")
        several = listed(f"settings[{name!r}]", values, "values")
        found[name] = tuple({text_of(value): value for value in several}.values())
        if not several:
            raise SettingsError(f"{name} has no value; give at least one")
    return found


def points(settings: Mapping[str, Sequence[Any]], seeds: Sequence[int]) -> Iterator[Point]:
    """Return the runs of a sweep, in the order of the settings."""
    for values in itertools.product(*settings.values()):
        for seed in seeds:
            yield Point(dict(zip(settings, values, strict=True)), seed)


def task_of(experiment: Path | Callable[..., Any], point: Point, iterations: int | None) -> Task:
    """Return the run of a point, with its settings checked.

    Args:
        experiment: A settings file, or a function that makes the arguments of :func:`d3gd.run`.
        point: The point.
        iterations: Replaces the number of iterations of the file.
    """
    if not isinstance(experiment, Path):
        return FromFunction(experiment, point)
    # Other processes may have another working directory.
    changed = load(experiment.resolve(), changes=point.values, seed=point.seed, iterations=iterations)
    return FromFile(changed)


def parsed(text: str) -> tuple[str, list[Any]]:
    """Return the name and the values of ``NAME=VALUE,VALUE``; each value is TOML, or text if it is not.

    Example:
        >>> parsed("algorithm.step_size=0.1,{start=1.0, power=0.5}")
        ('algorithm.step_size', [0.1, {'start': 1.0, 'power': 0.5}])
        >>> parsed("algorithm.rule=global,exact")
        ('algorithm.rule', ['global', 'exact'])
    """
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise SettingsError(f"--set {text}: give a name and its values, such as algorithm.step_size=0.01,0.1")
    return name.strip(), [value_of(part.strip()) for part in _parts(values)]


def text_of(value: Any) -> str:
    """Return a value in words: texts as they are, numbers as short as they can be, others as TOML.

    Example:
        >>> [text_of(value) for value in ("global", 1e-9, 0.1, 1 / 3, True)]
        ['global', '1e-09', '0.1', '0.3333333333333333', 'true']
    """
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return value if isinstance(value, str) else to_toml(value)


def _parts(text: str) -> Iterator[str]:
    """Return the parts of a text between commas, but not within quotes or brackets."""
    part, depth, quote = "", 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "," and depth == 0:
            yield part
            part = ""
            continue
        else:
            depth += (character in "[{") - (character in "]}")
        part += character
    yield part
