"""What trackers of experiments are given: numbers by name, and settings as flat texts."""

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from d3gd.arrays import Array
from d3gd.errors import D3GDError
from d3gd.metrics import Snapshot

_ODD = re.compile(r"[^\w\-./ ]")


def imported(module: str, extra: str, who: str) -> Any:
    """Import an optional package, or raise an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise D3GDError(f"{who} needs {error.name or module}; install it with: pip install 'd3gd[{extra}]'") from error


def numbers(snapshot: Snapshot) -> dict[str, float]:
    """Return the metrics of a record that are one number each."""
    return {tag(name): float(value) for name, value in snapshot.metrics.items() if np.ndim(value) == 0}


def vectors(snapshot: Snapshot) -> dict[str, Array]:
    """Return the finite values of the metrics that have a number per agent, and of the weights of all links."""
    found = {tag(name): np.asarray(value) for name, value in snapshot.metrics.items() if np.ndim(value) == 1}
    links = snapshot.weights.tocoo()
    found["weights"] = links.data[links.coords[0] != links.coords[1]]
    finite = {name: values[np.isfinite(values)] for name, values in found.items()}
    return {name: values for name, values in finite.items() if values.size}


def tag(name: str) -> str:
    """Return a metric's name in characters that all trackers accept."""
    return _ODD.sub("_", name)


def flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield settings by their dotted names."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield tag(f"{prefix}{key}"), value
