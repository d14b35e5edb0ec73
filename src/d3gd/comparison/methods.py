"""The methods of a comparison: the library's, variants of them by name, and a user's."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.catalogue import methods
from d3gd.config.experiment import make
from d3gd.config.schema import unknown
from d3gd.config.toml import value_of
from d3gd.errors import SettingsError

Maker: TypeAlias = Callable[[float], Algorithm[Any]]

# Variants included in addition to the defaults of every method.
VARIANTS = (
    "DGD combine=after",
    "D3GD rule=global",
    "FROST rule=fixed perron=tracked",  # its agents know only their in-neighbours
    "PerronD3GD rule=local",
    "PerronD3GD rule=fixed",
)
HARDENED = ("DiDGD averaged=true",)  # for unreliable networks


def usual(conditions: object = None) -> dict[str, Maker]:
    """Return the library's methods, each a function of the step size, by name; more of them under conditions."""
    names = [*methods(), *VARIANTS, *(() if conditions is None else HARDENED)]
    return {name: named(name) for name in sorted(names, key=str.lower)}


def named(text: str) -> Maker:
    """Return a method by its name and settings, e.g. ``"PerronD3GD rule=local"``.

    Args:
        text: The class's name, then ``key=value`` words as in the ``[algorithm]`` table of a settings file.

    Example:
        >>> named("PerronD3GD rule=local")(0.1).rule
        'local'
    """
    kind, *words = text.split()
    known = {name.lower(): name for name in methods()}
    if kind.lower() not in known:
        raise SettingsError(f"{unknown('method', kind, list(methods()))}; or pass your own: d3gd.compare(methods=...)")
    table: dict[str, Any] = {"kind": known[kind.lower()]}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key == "step_size":
            hint = "the comparison chooses the step size" if key == "step_size" else "write key=value"
            raise SettingsError(f"method {text!r}: found {word!r}; {hint}, as in 'PerronD3GD rule=local'")
        table[key] = value_of(value)
    maker = partial(_made, table, f"method {text!r}")
    maker(1.0)  # fail now if a setting does not exist
    return maker


def _made(table: Mapping[str, Any], where: str, step_size: float) -> Any:
    return make("algorithm", {**table, "step_size": step_size}, where)


def chosen(only: Sequence[str] | None, own: Mapping[str, Maker] | None, conditions: object = None) -> dict[str, Maker]:
    """Return the methods of a comparison.

    Args:
        only: Names of the library's methods, with settings, or of a user's methods; by default all.
        own: A user's methods, each a function of the step size.
        conditions: The conditions of the network, if any.
    """
    own = dict(own or {})
    for name, maker in own.items():
        if not isinstance(name, str) or not name.strip() or not callable(maker):
            raise SettingsError(
                f"method {name!r}: found {type(maker).__name__}; give a name and a function of the step size, such as "
                '{"mine": lambda gamma: Mine(step_size=gamma)}'
            )
    if only is None:
        return usual(conditions) | own
    names = [name.strip() for name in only if name.strip()]
    if not names:
        raise SettingsError(f"no method is left to compare; choose from {', '.join([*usual(), *own])}")
    return {name: own[name] if name in own else named(name) for name in names}
