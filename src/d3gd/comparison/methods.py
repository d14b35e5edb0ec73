"""The methods of a comparison: the library's, variants of them by name, and a user's."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from d3gd.algorithms.base import Algorithm
from d3gd.algorithms.catalogue import methods
from d3gd.config.schema import unknown
from d3gd.config.tables import make
from d3gd.config.toml import value_of
from d3gd.errors import SettingsError
from d3gd.validation import function, listed, mapping, shown

Maker: TypeAlias = Callable[[float], Algorithm[Any]]

# Variants included in addition to the defaults of every method.
VARIANTS = (
    "DGD combine=after",
    "D3GD rule=global",
    "DiDGD step_size.power=0.5",  # a step that decays removes the bias of Di-DGD in the long run
    "FROST rule=fixed perron=tracked",  # its agents never learn of the network
    "PerronD3GD rule=planned",
    "PerronD3GD rule=fixed",
    "PerronD3GD rule=fixed perron=tracked",  # nor do these
)
HARDENED = ("DiDGD averaged=true",)  # for unreliable networks
_DECAY = "step_size."  # the settings of a schedule


def usual(conditions: object = None) -> dict[str, Maker]:
    """Return the library's methods, each a function of the step size, by name; more of them under conditions."""
    names = [*methods(), *VARIANTS, *(() if conditions is None else HARDENED)]
    return {name: named(name) for name in sorted(names, key=str.lower)}


def named(text: str) -> Maker:
    """Return a method by its name and settings, e.g. ``"PerronD3GD rule=planned"``.

    Args:
        text: The class's name, then ``key=value`` words as in the ``[algorithm]`` table of a settings file. With
            ``step_size.power=`` or ``step_size.over=`` the step size decays (:class:`d3gd.schedules.Decay`), and the
            comparison chooses where it starts.

    Example:
        >>> named("PerronD3GD rule=planned")(0.1).rule
        'planned'
        >>> named("DiDGD step_size.power=0.5")(0.1).step_size
        Decay(start=0.1, power=0.5, over=1.0)
    """
    kind, *words = text.split()
    known = {name.lower(): name for name in methods()}
    if kind.lower() not in known:
        raise SettingsError(f"{unknown('method', kind, list(methods()))}; or pass your own: d3gd.compare(methods=...)")
    table: dict[str, Any] = {"kind": known[kind.lower()]}
    decay: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key in ("step_size", f"{_DECAY}start"):
            hint = "write key=value" if not equals else "the comparison chooses the step size"
            raise SettingsError(f"method {text!r}: found {word!r}; {hint}, as in 'PerronD3GD rule=planned'")
        part, name = (decay, key.removeprefix(_DECAY)) if key.startswith(_DECAY) else (table, key)
        part[name] = value_of(value)
    maker = partial(_made, table, decay, f"method {text!r}")
    maker(1.0)  # fail now if a setting does not exist
    return maker


def _made(table: Mapping[str, Any], decay: Mapping[str, Any], where: str, step_size: float) -> Any:
    step = {"start": step_size, **decay} if decay else step_size
    return make("algorithm", {**table, "step_size": step}, where)


def chosen(only: Sequence[str] | None, own: Mapping[str, Maker] | None, conditions: object = None) -> dict[str, Maker]:
    """Return the methods of a comparison.

    Args:
        only: Names of the library's methods, with settings, or of a user's methods; by default all.
        own: A user's methods, each a function of the step size.
        conditions: The conditions of the network, if any.
    """
    own = dict(mapping("methods", own, "names to functions of the step size"))
    for name, maker in own.items():
        if not isinstance(name, str) or not name.strip():
            raise SettingsError(
                f"a method is named {shown(name)}; give a name and a function of the step size, such as "
                '{"mine": lambda gamma: Mine(step_size=gamma)}'
            )
        function(f"method {name!r}", maker, "the step size")
    if only is None:
        return usual(conditions) | own
    names = listed("only", only, "names of methods")
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise SettingsError(f"only holds {shown(wrong[0])}; give names of methods, such as 'PerronD3GD rule=planned'")
    names = [name.strip() for name in names if name.strip()]
    if not names:
        raise SettingsError(f"no method is left to compare; choose from {', '.join([*usual(), *own])}")
    return {name: own[name] if name in own else named(name) for name in names}
