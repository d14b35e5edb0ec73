"""What a page needs to know of a run, ready for JSON."""

import base64
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from d3gd.arrays import CSR, Array, Floats, Ints
from d3gd.drawing import order, places
from d3gd.errors import RecordError, WeightsError
from d3gd.result import History, Result
from d3gd.weights import perron

DRAWN_UP_TO = 300  # agents; above, a page shows the matrix of weights only
EXACT_UP_TO = 1000  # agents; above, Perron weights of all records would take minutes
_POINTS = 1000  # of a curve
_NUMBERS = 1 << 21  # weights over time on a page, 8 MB as single precision


def payload(name: str, result: Result) -> dict[str, Any]:
    """Return a run as a page shows it.

    Args:
        name: Its name on the page.
        result: The run.
    """
    n = len(result.x)
    if result.weights.shape != (n, n):
        raise RecordError(
            f"{name} is the run of one site, which knows its own weights only; report what d3gd site collect writes"
        )
    points = thinned(len(result.iterations), _POINTS)
    history = result.history or _final(result)
    sent = result.metrics.get("bytes")
    drawn = n <= DRAWN_UP_TO
    return {
        "name": name,
        "status": result.status,
        "message": result.message,
        "seconds": result.seconds,
        "settings": list(_flat(result.settings)),
        "agents": n,
        "names": [str(i) for i in range(n)] if result.labels is None else list(result.labels),
        "links": int((history.sources != history.targets).sum()),
        "bytes": None if sent is None or not len(sent) else float(sent[-1]),
        "iterations": result.iterations[points].tolist(),
        "metrics": {key: numbers(each[points]) for key, each in result.metrics.items() if each.ndim == 1},
        "perAgent": {key: packed(each[points]) for key, each in _per_agent(result, n)},
        "recorded": result.history is not None,
        "classes": None if history.class_proportions is None else packed(history.class_proportions),
        "places": places(n, history.sources, history.targets) if drawn else None,
        "order": order(n, history.sources, history.targets),
        **_over_time(history),
    }


def thinned(records: int, most: int) -> Ints:
    """Return the positions of at most about ``most`` of some records, evenly spaced, with the first and the last.

    Example:
        >>> thinned(10, 4).tolist()
        [0, 3, 6, 9]
    """
    step = max(1, math.ceil(records / most))
    return np.unique(np.append(np.arange(0, records, step), max(records - 1, 0))) if records else np.arange(0)


def numbers(values: Array) -> list[float | None]:
    """Return a curve as a list, with None where it is not finite, which JSON has no word for."""
    return [value if math.isfinite(value) else None for value in np.asarray(values, dtype=np.float64).tolist()]


def packed(values: Array) -> dict[str, Any]:
    """Return an array as text: base64 of little-endian float32 or int32."""
    kind = "i4" if values.dtype.kind in "iub" else "f4"
    with np.errstate(over="ignore"):
        content = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"type": kind, "shape": list(values.shape), "base64": base64.b64encode(content).decode()}


def _over_time(history: History) -> dict[str, Any]:
    frames = thinned(len(history), max(2, _NUMBERS // len(history.sources)))
    return {
        "frames": history.iterations[frames].tolist(),
        "sources": packed(history.sources),
        "targets": packed(history.targets),
        "weights": packed(history.weights[frames]),
        "perron": packed(np.array(list(_perron_weights(history, frames)))),
        "losses": None if history.losses is None else packed(history.losses[frames]),
        "sent": None if history.bytes is None else packed(_sent(history, frames)),
    }


def _sent(history: History, frames: Ints) -> Floats:
    """Return what each link had carried, (frames, entries), or (frames, 1) if all had carried the same."""
    assert history.bytes is not None
    sent, links = history.bytes[frames].astype(np.float64), history.sources != history.targets
    same = links.any() and not np.ptp(sent[:, links], axis=1).any()
    return sent[:, np.flatnonzero(links)[:1]] if same else sent


def _perron_weights(history: History, frames: Ints) -> Iterator[Floats]:
    known: Floats | None = None
    for i, frame in enumerate(frames):
        same = i > 0 and np.array_equal(history.weights[frame], history.weights[frames[i - 1]])
        if known is None or not same:
            known = _perron(history.matrix(frame))
        yield known


def _perron(weights: CSR) -> Floats:
    if weights.shape[0] > EXACT_UP_TO or not np.isfinite(weights.data).all():
        return np.full(weights.shape[0], np.nan)
    try:
        return perron(weights)
    except WeightsError:  # they no longer connect all agents
        return np.full(weights.shape[0], np.nan)


def _final(result: Result) -> History:
    """Return a history of one record, for a run that recorded none."""
    final = result.weights.tocoo()
    targets, sources = (np.asarray(ends, dtype=np.int64) for ends in final.coords)
    last = result.iterations[-1:] if len(result.iterations) else np.zeros(1, dtype=np.int64)
    sent = None if result.traffic is None else result.traffic.tocoo().data[None]
    return History(last, final.data[None], sources, targets, bytes=sent)


def _per_agent(result: Result, n: int) -> Iterator[tuple[str, Array]]:
    for name, values in result.metrics.items():
        if values.ndim == 2 and values.shape[1] == n <= DRAWN_UP_TO:
            yield name, values.astype(np.float64)


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Return settings as pairs of a dotted name and a text."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif (prefix, key) != ("graph.", "labels"):
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            yield f"{prefix}{key}", text if len(text) <= 200 else f"{text[:200]}…"
