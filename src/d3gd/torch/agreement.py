"""What ranks tell each other about their steps, so that a difference ends in words and not in a hang."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from d3gd.arrays import Floats
from d3gd.errors import SettingsError, ToldElsewhereError, TransportError
from d3gd.transports import Transport

EVERY = 16  # steps between two agreements, where nothing calls for one at each step

_WHAT = "comparing iteration and lr: every 16th step, within join, with GradScaler, and with a loaded state"
_FILE = "; is the file of another rank missing? load a state on every rank, or on none"

_DOING = ("takes a step", "loads a state")


class Agreed(NamedTuple):
    """What all ranks know after they have told each other."""

    skip: bool = False  # no rank takes this step, since a gradient of one of them overflowed
    finished: bool = False  # every rank is out of data


def agree(
    transport: Transport,
    doing: Literal["takes a step", "loads a state"],
    iteration: int,
    sizes: Sequence[float],
    *,
    run: int = 0,
    skip: bool = False,
    out: bool = False,
) -> Agreed:
    """Compare what ranks are about to do: one small message to every other rank.

    Args:
        transport: The ranks.
        doing: What this rank is about to do.
        iteration: The number of its steps.
        sizes: The step size of each of its groups; NaN for none.
        run: The run that saved the state which it loads.
        skip: Whether it cannot take this step.
        out: Whether it is out of data.
    """
    own = np.array([_DOING.index(doing), iteration, skip, out, run, *sizes], dtype=np.float64)
    try:
        table = transport.each(own, _WHAT) if transport.ranks > 1 else own[None]
    except ToldElsewhereError:
        raise
    except TransportError as error:
        raise TransportError(f"{error}{_FILE if doing == 'loads a state' else ''}") from None
    difference = _difference(table)
    if difference:
        with transport.together():  # every rank has found the same; one of them tells it
            raise SettingsError(difference)
    return Agreed(skip=bool(table[:, 2].any()), finished=bool(table[:, 3].all()))


def _difference(table: Floats) -> str:
    """Describe the first difference between ranks; empty if there is none."""
    doing, iteration, out, run, sizes = table[:, 0], table[:, 1], table[:, 3], table[:, 4], table[:, 5:]
    other = _first(doing != doing[0])
    if other:
        late = other if doing[other] == 0 else 0
        return (
            f"rank {other} {_DOING[int(doing[other])]} while rank 0 {_DOING[int(doing[0])]}; is the file of rank "
            f"{late} missing? load a state on every rank, or on none"
        )
    other = _first(iteration != iteration[0])
    if other:
        return (
            f"rank {other} is at iteration {iteration[other]:.0f} and rank 0 at {iteration[0]:.0f}; corrections and "
            "trackers of different iterations do not belong together: load states that all ranks saved at the same step"
        )
    other = _first(run != run[0])
    if other:
        return (
            f"rank {other} loads a state of another run than rank 0; corrections and trackers of different runs do not "
            "belong together: load states that all ranks saved at the same step of the same run"
        )
    other = _first(~((sizes == sizes[0]) | (np.isnan(sizes) & np.isnan(sizes[0]))).all(axis=1))
    if other:
        shown = [", ".join(f"{size:g}" for size in sizes[rank]) for rank in (other, 0)]
        return f"rank {other} has lr {shown[0]} and rank 0 has {shown[1]}; " + (
            "a scheduler that is stepped after each batch must be given to join(scheduler)"
            if out.any()
            else "agents need the same: change it equally on all ranks, neither by a rank's own loss nor over its own "
            "number of batches; if ranks have different numbers, use opt.join()"
        )
    return ""


def _first(mask: np.typing.NDArray[np.bool_]) -> int:
    """Return the first rank of a mask, which rank 0 is never in; 0 if there is none."""
    return int(np.argmax(mask))
