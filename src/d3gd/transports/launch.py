"""The launcher that started this process, from its environment."""

import math
import os
from typing import Literal, TypeAlias

from d3gd import validation
from d3gd.errors import SettingsError
from d3gd.transports.base import TIMEOUT, Transport

Name: TypeAlias = Literal["auto", "alone", "mpi", "torch"]

_MPI_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
_MPI_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK")


def connect(name: Name = "auto", *, timeout: float = TIMEOUT, more_time: str = Transport.more_time) -> Transport:
    """Return the transport of the launcher that started this process; without a launcher, that of a single process.

    Args:
        name: ``"mpi"`` (mpiexec), ``"torch"`` (torchrun), ``"alone"``, or ``"auto"`` for that of the launcher.
        timeout: Seconds that a rank waits for another before the run ends; ``math.inf`` for no limit.
        more_time: How to allow more, as messages put it.

    Returns:
        The transport; as a context manager it makes an error of one rank end all of them, with one message.

    Example:
        >>> import d3gd
        >>> with d3gd.transports.connect() as transport:
        ...     problem = d3gd.problems.quadratic(agents=4, dim=2)
        ...     algorithm, graph = d3gd.DiDGD(step_size=0.1), d3gd.graphs.ring(4)
        ...     result = d3gd.run(algorithm, graph, problem, iterations=10, transport=transport)
    """
    validation.within("timeout", timeout, 0, math.inf, closed="(]")
    if name == "auto":
        name = _launcher()
    if name == "mpi":
        from d3gd.transports.mpi import MPI

        return MPI(timeout=timeout, more_time=more_time)
    if name == "torch":
        from d3gd.transports.torch_dist import TorchDistributed

        return TorchDistributed(timeout=timeout, more_time=more_time)
    if name != "alone":
        raise SettingsError(f"transport = {name!r}: choose 'auto', 'alone', 'mpi' or 'torch'")
    from d3gd.transports.alone import Alone

    return Alone()


def is_first() -> bool:
    """Whether this process is the one that prints, according to its environment."""
    return _number("RANK", *_MPI_RANKS) in (None, 0)


def mpi_rank() -> int:
    """The rank that mpiexec gave this process, known before MPI starts; 0 if unknown."""
    return _number(*_MPI_RANKS) or 0


def _launcher() -> Name:
    if "MASTER_ADDR" in os.environ and (_number("WORLD_SIZE") or 1) > 1:
        return "torch"
    return "mpi" if (_number(*_MPI_SIZES) or 1) > 1 else "alone"


def _number(*names: str) -> int | None:
    values = [os.environ[name] for name in names if os.environ.get(name, "").isdecimal()]
    return int(values[0]) if values else None
