"""Checks of what a method declares and returns, before and after its first step.

Later steps are not checked: a method whose first state is valid is trusted.
"""

from typing import Any, get_args

import numpy as np

from d3gd.algorithms.base import Algorithm, Needs
from d3gd.conditions import Hardship
from d3gd.errors import D3GDError, SettingsError
from d3gd.network import Network
from d3gd.state import declared, flatten


def require_declared(algorithm: Algorithm[Any]) -> None:
    """Raise an error if a method declares unknown needs or conditions."""
    name, needs = type(algorithm).__name__, algorithm.needs
    survives: Any = algorithm.survives
    if needs not in get_args(Needs):
        raise SettingsError(f"{name} needs {needs!r}, which is not known; choose from {_listed(get_args(Needs))}")
    if not isinstance(survives, (frozenset, set)):
        raise SettingsError(f"{name} survives {survives!r}; give a set of words, such as frozenset({{'delay'}})")
    unknown = [word for word in survives if word not in get_args(Hardship)]
    if unknown:
        raise SettingsError(
            f"{name} survives {unknown[0]!r}, which is not known; choose from {_listed(get_args(Hardship))}"
        )


def require_state(algorithm: Algorithm[Any], net: Network, state: Any, dim: int, name: str, verb: str) -> None:
    """Raise an error unless a state, and what a method derives from it, match the network.

    Args:
        algorithm: The method.
        net: The network.
        state: The state that one of its functions returned.
        dim: The length of a model.
        name: The method's name.
        verb: The name of that function.
    """
    agents, edges = len(net.agents), len(net.a0)
    if not (isinstance(state, tuple) and "_fields" in dir(state)):
        raise D3GDError(f"{name}.{verb} returned a {type(state).__name__}; return its state as a NamedTuple of arrays")
    _require_axes(state, {"agent": agents, "edge": edges}, f"{name}.{verb}")
    x = algorithm.point(state)
    _require_array(x, (agents, dim), f"{name}.point after {verb}", "one model per agent")
    if x.dtype != net.dtype:
        raise D3GDError(
            f"{name}.point after {verb} is {x.dtype} in a {net.dtype} run; keep that precision: net.precise"
        )
    _require_array(algorithm.weights(net, state), (edges,), f"{name}.weights", "one weight per edge of the block")
    scale = algorithm.scale(net, state)
    if scale is not None:
        _require_array(scale, (agents,), f"{name}.scale", "one number per agent, or None")


def _require_axes(state: Any, lengths: dict[str, int], where: str) -> None:
    follows = declared(state)
    for field, array in flatten(state).items():
        kind, shape = follows[field], array.shape
        if kind == "scalar" and shape:
            raise D3GDError(f"{where} returned a state whose {field!r}, one number, has shape {shape}; return a number")
        if kind in lengths and shape[:1] != (lengths[kind],):
            raise D3GDError(
                f"{where} returned a state whose {field!r}, per {kind}, has shape {shape}; its first axis must be the "
                f"block's {lengths[kind]} {kind}s"
            )


def _require_array(value: Any, shape: tuple[int, ...], what: str, meaning: str) -> None:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        found = f"{value.dtype} numbers" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise D3GDError(f"{what} returned {found}; return an array of floats, {meaning}: shape {shape}")
    if value.shape != shape:
        raise D3GDError(f"{what} returned shape {value.shape}; return {meaning}: shape {shape}")


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(map(repr, words))
