"""Sources of batches for PyTorch models: tensors, datasets or loaders."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from d3gd.arrays import Ints
from d3gd.digest import digest
from d3gd.errors import ProblemError
from d3gd.problems.checks import check_batch, check_ids
from d3gd.problems.torch.batches import PIECE, Batch, Data, Fit, Group, KeyedBatches, Tensors
from d3gd.random import iteration_of

_GLIMPSES = 64  # items of a dataset in its fingerprint


class Source(ABC):
    """The batches of one agent."""

    @abstractmethod
    def draw(self, k: int) -> Batch | None:
        """The batch of iteration ``k``; None if an iteration uses all data."""

    @abstractmethod
    def pieces(self) -> Iterator[Batch]:
        """All data, chunk by chunk."""

    @abstractmethod
    def digest(self) -> str:
        """A digest of the source."""


class Items(Source):
    """A dataset whose items are fetched on demand."""

    def __init__(self, dataset: Any, name: str, keys: KeyedBatches | None, collate: Any, fit: Fit) -> None:
        self._dataset, self._name, self._keys, self._collate, self._fit = dataset, name, keys, collate, fit

    def draw(self, k: int) -> Batch | None:
        """Items at keyed indices."""
        return None if self._keys is None else self._fetch(self._keys.at(k))

    def pieces(self) -> Iterator[Batch]:
        """Items in their order."""
        size = len(self._dataset)
        return (self._fetch(range(i, min(i + PIECE, size))) for i in range(0, size, PIECE))

    def digest(self) -> str:
        """A digest of its length, its keys and a few of its items."""
        size, keys = len(self._dataset), self._keys
        seen = np.unique(np.linspace(0, size - 1, _GLIMPSES).astype(np.int64)).tolist()
        drawn = None if keys is None else [keys.agent, keys.batch, keys.seed]
        return digest([self._name, size, drawn], *(tensor.cpu().numpy() for tensor in self._fetch(seen)))

    def _fetch(self, places: Iterable[int]) -> Batch:
        return self._fit(self._collate([self._dataset[place] for place in places]), self._name)


class Stream(Source):
    """A user's loader, which yields a batch per iteration and restarts at its end."""

    def __init__(self, loader: Any, name: str, fit: Fit) -> None:
        self._loader, self._name, self._fit = loader, name, fit
        self._batches: Iterator[Any] = iter(())
        self._iteration, self._drawn = -1, dict[int, Batch]()

    def draw(self, k: int) -> Batch:
        """The next batch; within an iteration, the same batch for the same key."""
        if iteration_of(k) != self._iteration:
            self._iteration, self._drawn = iteration_of(k), {}
        if k not in self._drawn:
            self._drawn[k] = self._fit(self._next(), self._name)
        return self._drawn[k]

    def _next(self) -> Any:
        for _ in range(2):
            for batch in self._batches:
                return batch
            self._batches = iter(self._loader)
        raise ProblemError(f"the loader of {self._name} yields no batch; give it data, or drop_last=False")

    def pieces(self) -> Iterator[Batch]:
        """One separate pass."""
        return (self._fit(batch, self._name) for batch in self._loader)

    def digest(self) -> str:
        """A digest of its kind only: reading its data would advance its order."""
        return digest([self._name, type(self._loader.dataset).__name__, self._loader.batch_size])


class Sources(Data):
    """One source per agent; batches of equal shapes are stacked.

    Args:
        sources: The sources.
        common: The settings that their draws share.
    """

    def __init__(self, sources: Sequence[Source], common: list[Any]) -> None:
        self._sources, self._common, self.agents = sources, common, len(sources)

    def rounds(self, k: int | None) -> Iterable[list[Group]]:
        """The batches of every source, grouped by shape; None if a source has no more."""
        drawn = [None if k is None else source.draw(k) for source in self._sources]
        parts = [s.pieces() if batch is None else iter([batch]) for s, batch in zip(self._sources, drawn, strict=True)]
        for batches in zip_longest(*parts):
            yield _grouped(batches)

    def of(self, agent: int) -> Iterator[Batch]:
        """The agent's source."""
        return self._sources[agent].pieces()

    def restrict(self, positions: Ints) -> "Sources":
        """Only the sources of these agents."""
        return Sources([self._sources[position] for position in positions.tolist()], self._common)

    def common(self) -> list[Any]:
        """The settings given at construction."""
        return self._common

    def digests(self) -> list[str]:
        """The digests of the sources."""
        return [source.digest() for source in self._sources]


def _grouped(batches: Sequence[Batch | None]) -> list[Group]:
    import torch

    members: dict[Any, list[int]] = {}
    for row, batch in enumerate(batches):
        if batch is not None:
            members.setdefault(tuple((tensor.shape, tensor.dtype) for tensor in batch), []).append(row)
    return [
        Group(np.array(rows), tuple(map(torch.stack, zip(*(batches[row] or () for row in rows), strict=True))))
        for rows in members.values()
    ]


def gather(parts: Sequence[Any], fit: Fit, *, batch: int | None, seed: int, agent_ids: Any) -> Data:
    """Collect the data of a block of agents, in any supported form.

    Args:
        parts: For every agent a tuple (inputs, ..., target) of arrays or tensors, a ``Dataset`` or a ``DataLoader``.
        fit: Converts a loader's batch to tensors, given the agent's name for messages.
        batch: Samples for an iteration; None: all.
        seed: Seed of the draws.
        agent_ids: Global ids of the agents.
    """
    from torch.utils.data import DataLoader, TensorDataset, default_collate

    batch = check_batch(batch)
    if len(parts) == 0:
        raise ProblemError("data is empty; pass one dataset, loader or pair (inputs, targets) per agent")
    ids = check_ids(agent_ids, len(parts))
    names = [f"agent {agent}" for agent in ids.tolist()]
    plain = [part.tensors if isinstance(part, TensorDataset) else part for part in parts]
    if all(isinstance(part, (tuple, list)) for part in plain):
        import torch

        fitted = [fit(part, name) for part, name in zip(plain, names, strict=True)]
        for part, name in zip(fitted, names, strict=True):
            if not all(torch.isfinite(tensor).all() for tensor in part):
                raise ProblemError(f"{name} has NaN or infinite numbers; clean or drop them, all must be finite")
        if len({tuple((tensor.shape[1:], tensor.dtype) for tensor in part) for part in fitted}) == 1:
            sizes = np.array([len(part[0]) for part in fitted])
            whole = tuple(map(torch.cat, zip(*fitted, strict=True)))
            return Tensors(whole, sizes, batch=batch, seed=seed, ids=ids)
        parts = [TensorDataset(*part) for part in fitted]
    sources: list[Source] = []
    for part, name, agent in zip(parts, names, ids.tolist(), strict=True):
        if isinstance(part, DataLoader):
            if batch is not None:
                raise ProblemError(f"{name} has a DataLoader, which makes its own batches; leave batch={batch} out")
            keys: Any = part.batch_sampler
            keyed = isinstance(keys, KeyedBatches)
            sources.append(Items(part.dataset, name, keys, part.collate_fn, fit) if keyed else Stream(part, name, fit))
            continue
        dataset = TensorDataset(*fit(part, name)) if isinstance(part, (tuple, list)) else part
        size = _length(dataset, name)
        keys = None if batch is None else KeyedBatches(size, batch, agent=agent, seed=seed)
        sources.append(Items(dataset, name, keys, default_collate, fit))
    return Sources(sources, [batch, seed])


def _length(dataset: Any, name: str) -> int:
    from torch.utils.data import Dataset, IterableDataset

    if not isinstance(dataset, Dataset) or isinstance(dataset, IterableDataset):
        raise ProblemError(
            f"{name} has a {type(dataset).__name__}; give a pair (inputs, targets), a map-style Dataset or a DataLoader"
        )
    size = len(dataset)  # type: ignore[arg-type]  # map-style datasets have one, though their base does not say so
    if size == 0:
        raise ProblemError(f"{name} has an empty dataset; every agent needs at least one sample")
    return size
