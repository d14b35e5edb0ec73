"""Which launcher started this process, read from its environment."""

import math
import os
from typing import Literal, TypeAlias

from d3gd import validation
from d3gd.errors import SettingsError
from d3gd.transports.base import TIMEOUT, Transport

Name: TypeAlias = Literal["auto", "alone", "mpi", "torch"]

_MPI_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
_MPI_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK")


def connect(name: Name = "auto", *, timeout: float = TIMEOUT) -> Transport:
    """Return the transport of the launcher that started this process; without one, that of a process alone.

    Args:
        name: ``"mpi"`` (mpiexec), ``"torch"`` (torchrun), ``"alone"``, or ``"auto"`` to take the launcher's.
        timeout: How many seconds a rank waits for another before the run ends; ``math.inf`` for as long as it takes.

    Returns:
        The transport; as a context manager it lets an error of one rank end all of them, with one message.

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

        return MPI(timeout=timeout)
    if name == "torch":
        from d3gd.transports.torch_dist import TorchDistributed

        return TorchDistributed(timeout=timeout)
    if name != "alone":
        raise SettingsError(f"transport = {name!r}: choose 'auto', 'alone', 'mpi' or 'torch'")
    from d3gd.transports.alone import Alone

    return Alone()


def is_first() -> bool:
    """Whether this process is the one to speak, as far as its environment tells."""
    return _number("RANK", *_MPI_RANKS) in (None, 0)


def mpi_rank() -> int:
    """The rank that mpiexec gave this process, known before MPI starts; 0 where it is not."""
    return _number(*_MPI_RANKS) or 0


def _launcher() -> Name:
    if "MASTER_ADDR" in os.environ and (_number("WORLD_SIZE") or 1) > 1:
        return "torch"
    return "mpi" if (_number(*_MPI_SIZES) or 1) > 1 else "alone"


def _number(*names: str) -> int | None:
    values = [os.environ[name] for name in names if os.environ.get(name, "").isdecimal()]
    return int(values[0]) if values else None
