"""Batches for PyTorch models: keyed sampling, and agents' data in memory."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import count as count_from
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from d3gd.arrays import Ints
from d3gd.digest import digest
from d3gd.errors import ProblemError
from d3gd.problems.checks import check_batch
from d3gd.random import keyed_choices
from d3gd.validation import count

if TYPE_CHECKING:
    import torch

Batch: TypeAlias = tuple[Any, ...]  # tensors: inputs, then the target; first axis: samples

PIECE = 512  # samples per chunk when all data of an agent are evaluated


class KeyedBatches:
    """Mini-batches drawn with replacement, each a function of (seed, agent, iteration) alone.

    Meant as the ``batch_sampler`` of a ``torch.utils.data.DataLoader``. The samples of an iteration then depend neither
    on previous draws, so that training resumes exactly from any iteration, nor on the process that holds the agent.

    Args:
        samples: Number of samples of the agent.
        batch: Number of samples per mini-batch.
        agent: Index of the agent.
        seed: Seed of the draws.
        start: The first iteration.
        stop: The iteration before which to end; by default there is no end.

    Example:
        >>> list(KeyedBatches(100, 3, agent=2, stop=2))
        [[52, 59, 37], [81, 38, 51]]
        >>> next(iter(KeyedBatches(100, 3, agent=2, start=1)))
        [81, 38, 51]
    """

    def __init__(
        self, samples: int, batch: int, *, agent: int, seed: int = 0, start: int = 0, stop: int | None = None
    ) -> None:
        count("batch", batch, least=1)
        count("samples", samples, least=1)
        check_batch(batch)
        self.samples, self.batch, self.agent, self.seed = int(samples), int(batch), int(agent), int(seed)
        self.start, self.stop = start, stop

    def at(self, k: int) -> list[int]:
        """The samples of iteration ``k``."""
        one = np.array([self.agent])
        places: list[int] = keyed_choices(self.seed, one, k, self.batch, np.array([self.samples]))[0].tolist()
        return places

    def __iter__(self) -> Iterator[list[int]]:
        iterations = count_from(self.start) if self.stop is None else range(self.start, self.stop)
        return map(self.at, iterations)

    def __len__(self) -> int:
        if self.stop is None:
            raise TypeError("these batches have no end; pass stop= to limit them")
        return max(0, self.stop - self.start)


class Fit:
    """Converts a batch of any array types to tensors.

    Args:
        dtype: The type of the module, to which real numbers are converted.
        device: Its device.
    """

    def __init__(self, dtype: "torch.dtype", device: "torch.device") -> None:
        self._dtype, self._device = dtype, device

    def __call__(self, parts: Any, name: str) -> Batch:
        """Return the tensors of a batch; ``name`` is that of the agent, for messages."""
        import torch

        if not isinstance(parts, (tuple, list)) or len(parts) < 2:
            raise ProblemError(f"{name} has a batch of type {type(parts).__name__}; give (inputs, ..., target)")
        try:
            batch = [part if isinstance(part, torch.Tensor) else torch.tensor(np.asarray(part)) for part in parts]
        except (TypeError, ValueError) as error:
            raise ProblemError(f"{name} has a batch without tensors ({error}); give (inputs, ..., target)") from None
        shapes = [tuple(tensor.shape) for tensor in batch]
        if any(not shape or shape[0] != shapes[0][0] for shape in shapes) or shapes[0][0] == 0:
            raise ProblemError(f"{name} has tensors of shapes {shapes}; the first axis is the samples, at least one")
        batch = [t.to(self._device, self._dtype if t.is_floating_point() else t.dtype) for t in batch]
        if batch[-1].dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
            batch[-1] = batch[-1].long()  # the only integer type that torch's losses accept
        return tuple(batch)


def pieces(batch: Batch) -> Iterator[Batch]:
    """Split a long batch into chunks."""
    return (tuple(t[i : i + PIECE] for t in batch) for i in range(0, len(batch[0]), PIECE))


class Group(NamedTuple):
    """Agents whose batches have one shape, so that one vectorized call evaluates them."""

    rows: Ints  # (members,)  positions in the block
    tensors: "tuple[torch.Tensor, ...]"  # (members, samples, ...) each


class Data(ABC):
    """The batches of a block of agents."""

    agents: int

    @abstractmethod
    def rounds(self, k: int | None) -> Iterable[list[Group]]:
        """The batches of iteration k, in one round; for None, all data, in as many rounds as needed."""

    @abstractmethod
    def of(self, agent: int) -> Iterator[Batch]:
        """All data of the agent at one position, chunk by chunk."""

    @abstractmethod
    def restrict(self, positions: Ints) -> "Data":
        """Only some agents, with the same keys."""

    @abstractmethod
    def common(self) -> list[Any]:
        """The settings that all agents' draws share."""

    @abstractmethod
    def digests(self) -> list[str]:
        """A digest of each agent's data and draws."""


class Tensors(Data):
    """Samples held in memory, concatenated over agents: the mini-batches of all agents are one gather.

    Args:
        tensors: All agents' samples, concatenated along the first axis.
        sizes: Number of samples of each agent.
        batch: Samples for an iteration; None: all.
        seed: Seed of the draws.
        ids: Global ids of the agents.
    """

    def __init__(self, tensors: Batch, sizes: Ints, *, batch: int | None, seed: int, ids: Ints) -> None:
        self.tensors, self.sizes, self.batch, self.seed, self.ids = tensors, sizes, batch, seed, ids
        self.agents = len(sizes)
        self._firsts: Ints = np.cumsum(sizes) - sizes

    def rounds(self, k: int | None) -> Iterable[list[Group]]:
        """Keyed draws, or everything."""
        if k is not None and self.batch is not None:
            places = keyed_choices(self.seed, self.ids, k, self.batch, self.sizes)
            yield [self._group(np.arange(self.agents), places)]
            return
        for begin in range(0, int(self.sizes.max()), PIECE):
            lengths = np.clip(self.sizes - begin, 0, PIECE)
            yield [
                self._group(rows, np.tile(np.arange(begin, begin + length), (len(rows), 1)))
                for length in np.unique(lengths[lengths > 0]).tolist()
                for rows in [np.flatnonzero(lengths == length)]
            ]

    def chosen(self, agent: int, places: Ints) -> Batch:
        """Some samples of the agent at one position."""
        import torch

        index = torch.from_numpy(places + self._firsts[agent]).to(self.tensors[0].device)
        return tuple(tensor[index] for tensor in self.tensors)

    def of(self, agent: int) -> Iterator[Batch]:
        """Slices of its samples."""
        return pieces(tuple(tensor[self._cut(agent)] for tensor in self.tensors))

    def restrict(self, positions: Ints) -> "Tensors":
        """Only their samples."""
        import torch

        cuts = [self._cut(position) for position in positions.tolist()]
        tensors = tuple(torch.cat([tensor[cut] for cut in cuts]) for tensor in self.tensors)
        return Tensors(tensors, self.sizes[positions], batch=self.batch, seed=self.seed, ids=self.ids[positions])

    def common(self) -> list[Any]:
        """Batch and seed."""
        return [self.batch, self.seed]

    def digests(self) -> list[str]:
        """Digests of all numbers."""
        return [
            digest([agent, self.batch, self.seed], *(t[self._cut(i)].cpu().numpy() for t in self.tensors))
            for i, agent in enumerate(self.ids.tolist())
        ]

    def _cut(self, agent: int) -> slice:
        return slice(int(self._firsts[agent]), int(self._firsts[agent] + self.sizes[agent]))

    def _group(self, rows: Ints, places: Ints) -> Group:
        import torch

        index = torch.from_numpy(places + self._firsts[rows][:, None]).to(self.tensors[0].device)
        return Group(rows, tuple(tensor[index] for tensor in self.tensors))
