"""A site's file: who it is, whom it hears, who may hear it, and what it trains."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from d3gd import __version__
from d3gd.algorithms.identity import describe
from d3gd.arrays import Ints
from d3gd.config.schema import Table, checked, keys_of, prefixed, to_toml, unknown
from d3gd.config.tables import KINDS, make, privacy_of
from d3gd.config.toml import read_toml
from d3gd.errors import SettingsError
from d3gd.privacy import Privacy
from d3gd.sites.clipping import Trust
from d3gd.sites.conversation import Neighbours
from d3gd.sites.keys import KeyPair, read_secret, require_key
from d3gd.sites.messages import NAME
from d3gd.sites.own_table import own_table
from d3gd.sites.rounds import Pace, Waiting
from d3gd.sites.wire import Contact
from d3gd.validation import count, shown, within

Weights = Literal["metropolis", "uniform", "lazy"]

_NAME = re.compile(NAME)
_ADDRESS = re.compile(r"tcp://(\*|\[[0-9a-fA-F:.%\w]+\]|[\w.-]+):(\d{1,5})")
_MEGABYTE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """The keys of a site's file outside its tables.

    Attributes:
        name: The site's name, unique among all sites.
        session: The name of the training, the same at all sites.
        key: The file with its secret key.
        iterations: Number of iterations.
        bind: The address at which other sites reach this one; left out if it dials all of them.
        every: Iterations between records.
        seed: The seed of random draws, the same at all sites.
        dtype: The precision of models and messages.
        checkpoint_every: Iterations between checkpoints.
        weights: How the initial weights follow from the links.
        samples: The number of the site's samples; if all sites give it, objectives are weighed by it.
        pace: Whether to wait for the neighbours' messages of the same iteration, or to take the newest ones.
        patience: Seconds to wait for the messages of an iteration; ``inf`` waits for all.
        connect: Seconds to wait for all sites at the start.
        forget: Seconds without a sign of life after which a site is given up.
        trust: Whether to take what neighbours send as it is, or to clip what is far from the own model.
        largest: Limit on an array in a message, in megabytes.
        out: The folder of the run.
        script: A program that trains, in place of a problem and an algorithm.
    """

    name: str
    session: str
    key: str
    iterations: int = 0
    bind: str | None = None
    every: int = 10
    seed: int = 0
    dtype: Literal["float64", "float32"] = "float64"
    checkpoint_every: int | None = None
    weights: Weights = "metropolis"
    samples: int = 0
    pace: Pace = "rounds"
    patience: float = 10.0
    connect: float = 86400.0
    forget: float = 3600.0
    trust: Trust = "all"
    largest: int = 64
    out: str = "run"
    script: str | None = None

    def __post_init__(self) -> None:
        for word in ("name", "session"):
            if not _NAME.fullmatch(getattr(self, word)):
                raise SettingsError(
                    f"{word} = {shown(getattr(self, word))}: use up to 64 letters, digits, dots, dashes and underscores"
                )
        count("iterations", self.iterations, least=0)
        count("every", self.every, least=1)
        count("samples", self.samples, least=0)
        count("largest", self.largest, least=1)
        for word in ("patience", "connect", "forget"):
            within(word, getattr(self, word), 0, math.inf, closed="(]")
        if self.bind is not None:
            require_address(self.bind, "bind")


@dataclass(frozen=True, kw_only=True)
class Other:
    """A neighbour in a site's file.

    Attributes:
        name: Its name.
        key: Its public key.
        address: Its address, if this site dials it.
    """

    name: str
    key: str
    address: str | None = None


@dataclass(frozen=True)
class SiteFile:
    """A site's file, checked.

    Attributes:
        path: The file.
        settings: Its keys outside tables.
        neighbours: The other ends of its links.
        parts: The tables ``problem``, ``algorithm`` and ``privacy``, as far as it has them.
    """

    path: Path
    settings: SiteSettings
    neighbours: Neighbours
    parts: Mapping[str, Table]

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.path.parent / self.settings.out

    @property
    def waiting(self) -> Waiting:
        """How long the site waits."""
        return Waiting(self.settings.patience, self.settings.forget, self.settings.pace)

    @property
    def largest(self) -> int:
        """The largest frame, in bytes."""
        return self.settings.largest * _MEGABYTE

    def keys(self) -> KeyPair:
        """Read the site's keys."""
        return read_secret(self.path.parent / self.settings.key)

    def algorithm(self) -> Any:
        """Build the method."""
        if "algorithm" not in self.parts:
            raise SettingsError(
                f"{self.path.name}: [algorithm] is missing; write it, with kind = ... and step_size = ..."
            )
        return make("algorithm", self.parts["algorithm"], self.path.name)

    def problem(self, agent: Ints, n: int) -> Any:
        """Build the objective of this site, one of n.

        Args:
            agent: The site's index, as an array of one number.
            n: The number of sites.
        """
        table = dict(self.parts["problem"])
        for word in ("file", "test"):
            if word in table:
                table[word] = str(self.path.parent / table[word])
        where = f"{self.path.name}: [problem]"
        if table["kind"] != "own_table":
            return make("problem", table, self.path.name, agents=n, seed=self.settings.seed, block=agent)
        with prefixed(where):
            given = checked({key: value for key, value in table.items() if key != "kind"}, keys_of(own_table), where)
            return own_table(**{"seed": self.settings.seed, **given}, block=agent)

    def require_data(self) -> None:
        """Raise an error if the site's own table is missing or unusable, before any neighbour waits for it."""
        if self.parts.get("problem", {}).get("kind") == "own_table":
            self.problem(np.zeros(1, dtype=np.int64), 1)

    def privacy(self) -> Privacy | None:
        """Return the settings of differential privacy, if the file has any."""
        return privacy_of(self.parts, self.path.name)

    @property
    def ledger(self) -> Path:
        """The file that says how much privacy has been spent."""
        return self.path.with_name("privacy.json")

    def agreed(self, algorithm: Any = None) -> dict[str, str]:
        """Return in words what must be equal at all sites.

        Args:
            algorithm: The method, if it does not come from this file.
        """
        own = self.settings
        if algorithm is None and "algorithm" in self.parts:
            algorithm = self.algorithm()
        told = describe(algorithm) if algorithm is not None else {}
        kind = self.parts.get("problem", {}).get("kind", "")
        return {
            "version of d3gd": __version__,
            **({"method": _called(told)} if told else {}),
            **({"problem": str(kind)} if kind else {}),
            **({"number of iterations": str(own.iterations)} if told else {}),
            "seed": str(own.seed),
            "precision": own.dtype,
            "rule of the weights": own.weights,
            "pace": own.pace,
            "weighing": "by samples" if own.samples else "all sites equally",
        }


def load(path: str | Path, **overrides: Any) -> SiteFile:
    """Read a site's file and check it; nothing is connected or built yet.

    Args:
        path: The TOML file.
        **overrides: Replacements for keys outside the tables.
    """
    path = Path(path)
    where = path.name
    content = read_toml(path)
    parts: dict[str, Table] = {}
    for part in ("problem", "algorithm"):
        table = content.pop(part, None)
        if table is not None:
            parts[part] = _part(part, table, where)
    if "privacy" in content:
        parts["privacy"] = content.pop("privacy")
    others = {word: _others(content.pop(word, []), f"{where}: [[{word}]]") for word in ("hears", "heard_by")}
    also = ["[problem]", "[algorithm]", "[privacy]", "[[hears]]", "[[heard_by]]"]
    settings = checked(content, keys_of(SiteSettings), f"{where}:", also=also)
    with prefixed(f"{where}:"):
        own = replace(SiteSettings(**settings), **overrides)
        neighbours = Neighbours(others["hears"], others["heard_by"])
        _require_sound(own, neighbours, parts)
    privacy_of(parts, where)
    return SiteFile(path, own, neighbours, parts)


def require_address(address: str, where: str) -> str:
    """Return an address, or raise an error unless it is one."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not int(found[2]) < 1 << 16:
        raise SettingsError(f"{where} = {shown(address)} is no address; write it as tcp://HOST:PORT")
    return address


def written(settings: SiteSettings, neighbours: Neighbours, parts: Mapping[str, Table]) -> str:
    """Return a site's file as text."""
    given = {field.name: getattr(settings, field.name) for field in fields(settings)}
    lines = [
        f"{name} = {to_toml(value)}"
        for name, value in given.items()
        if value is not None and (value != getattr(type(settings), name, None) or name == "iterations")
    ]
    for word, group in zip(("hears", "heard_by"), neighbours, strict=True):
        for other in group:
            lines += ["", f"[[{word}]]", f"name = {to_toml(other.name)}", f"key = {to_toml(other.key)}"]
            lines += [] if other.address is None else [f"address = {to_toml(other.address)}"]
    for name, table in parts.items():
        lines += ["", f"[{name}]", *(f"{key} = {to_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _part(part: str, table: Any, where: str) -> Table:
    kinds = [*KINDS[part], *(["own_table"] if part == "problem" else [])]
    if not isinstance(table, dict) or not isinstance(table.get("kind"), str):
        raise SettingsError(f"{where}: [{part}] needs a kind; choose from {', '.join(kinds)}")
    if table["kind"] not in kinds:
        raise unknown(f"{where}: [{part}] kind", table["kind"], kinds)
    return table


def _others(tables: Any, where: str) -> tuple[Contact, ...]:
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SettingsError(
            f"{where} is {shown(tables)}; write {where.split()[-1]} and under it name and key, per site"
        )
    found: list[Contact] = []
    for table in tables:
        other = Other(**checked(table, keys_of(Other), where))
        if not _NAME.fullmatch(other.name):
            raise SettingsError(f"{where} name = {shown(other.name)} is no name of a site; write it as that site does")
        require_key(other.key, f"{where} key of {other.name}")
        if other.address is not None:
            require_address(other.address, f"{where} address of {other.name}")
        found.append(Contact(other.name, other.key, other.address))
    return tuple(found)


def _require_sound(own: SiteSettings, neighbours: Neighbours, parts: Mapping[str, Table]) -> None:
    if not neighbours.sources or not neighbours.listeners:
        word, other = ("hears", "hear") if not neighbours.sources else ("heard_by", "be heard by")
        raise SettingsError(f"[[{word}]] is missing; a site must {other} at least one other")
    for group in neighbours:
        names = [contact.name for contact in group]
        twice = sorted({name for name in names if names.count(name) > 1 or name == own.name})
        if twice:
            raise SettingsError(f"{twice[0]!r} is named twice, or is this site itself; name every neighbour once")
    keys: dict[str, str] = {}
    for contact in (*neighbours.sources, *neighbours.listeners):
        if keys.setdefault(contact.name, contact.key) != contact.key:
            raise SettingsError(f"{contact.name!r} has two keys; give the same in [[hears]] and [[heard_by]]")
    if len(set(keys.values())) < len(keys):
        raise SettingsError("two sites have the same key; every site needs its own")
    callers = [contact.name for contact in neighbours.contacts() if contact.address is None]
    if callers and own.bind is None:
        raise SettingsError(
            f"{callers[0]} has no address, so it has to dial this site, which has no bind; give one of them"
        )
    if own.script is None and (missing := {"problem", "algorithm"} - parts.keys()):
        raise SettingsError(f"[{sorted(missing)[0]}] is missing; write it, or name a script")


def _called(told: Mapping[str, Any]) -> str:
    given = [f"{name}={value!r}" for name, value in told.items() if name != "kind"]
    return f"{told['kind']}({', '.join(given)})"
