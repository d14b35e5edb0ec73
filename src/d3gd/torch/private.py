"""Differentially private gradients in a user's own loop."""

import os
import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from torch.utils.data import default_collate

from d3gd.errors import SettingsError
from d3gd.privacy.mechanism import normal, require_delta, simulated_secret, uniform
from d3gd.privacy.settings import Privacy, require_privacy
from d3gd.problems.torch.batches import Batch, Fit
from d3gd.problems.torch.clipping import clipped_sum, require_separable
from d3gd.problems.torch.layers import one_type
from d3gd.problems.torch.networks import Loss
from d3gd.validation import count


class PrivateGradients:
    r"""Takes the place of ``loss(model(inputs), target).backward()`` where messages must be differentially private.

    :meth:`backward` draws each example independently with probability ``batch / len(data)``, clips the gradient of
    each that is drawn, adds Gaussian noise to their sum and sets the parameters' ``grad`` to it, divided by ``batch``;
    see :class:`d3gd.Privacy`. Whatever an optimizer computes from that and sends is as private. Losses that are
    computed on the data elsewhere and sent are not.

    Args:
        model: The module.
        loss: A function of outputs and targets that returns the mean over a batch.
        data: The examples of this agent: a tuple (inputs, ..., target) of arrays or tensors, or a map-style dataset.
        privacy: The settings.
        batch: The expected number of examples of a step; None: all.
        seed: A key of all draws, to repeat an experiment; each process needs its own. By default draws come from the
            operating system, and nobody can predict them.

    Example:
        >>> import torch
        >>> from d3gd import Privacy
        >>> data = torch.randn(100, 3), torch.zeros(100, dtype=torch.long)
        >>> model, loss = torch.nn.Linear(3, 2), torch.nn.functional.cross_entropy
        >>> private = PrivateGradients(model, loss, data, Privacy(clip=1.0, noise=2.0), batch=20)
        >>> private.backward()
        >>> round(private.epsilon(), 2)
        0.69
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        data: Any,
        privacy: Privacy,
        *,
        batch: int | None = None,
        seed: int | None = None,
    ) -> None:
        require_privacy(privacy)
        require_separable(model)
        self._model, self._loss_function, self._data, self._privacy = model, loss, data, privacy
        self._fit = Fit(*one_type(model))
        self._whole = self._fit(data, "this agent") if isinstance(data, (tuple, list)) else None
        self._size = len(self._whole[0]) if self._whole is not None else len(data)
        require_delta(privacy, self._size)
        expected = self._size if batch is None else min(self._size, count("batch", batch, least=1))
        self._expected, self.sample = expected, expected / self._size
        self._secret = os.urandom(32) if seed is None else simulated_secret(count("seed", seed, least=0))
        self.count = 0

    def backward(self) -> None:
        """Add a private gradient to the ``grad`` of every trained parameter."""
        self.count += 1
        told = struct.pack("<qddd", self.count, self._privacy.clip, self._privacy.noise, self.sample)
        trained = {name: p for name, p in self._model.named_parameters() if p.requires_grad}
        values = {name: p.detach() for name, p in trained.items()}
        chosen = np.flatnonzero(uniform(self._size, b"sampling", self._secret, told) < self.sample)
        dim = sum(p.numel() for p in values.values())
        noise = torch.from_numpy(normal(dim, b"noise", self._secret, told))
        first = next(iter(values.values()))
        total = self._privacy.noise * self._privacy.clip * noise.to(first.device)
        if len(chosen):
            total = total + clipped_sum(self._loss, values, self._fetched(chosen.tolist()), self._privacy.clip)
        parts = torch.split(total / self._expected, [p.numel() for p in values.values()])
        for parameter, part in zip(trained.values(), parts, strict=True):
            gradient = part.reshape(parameter.shape).to(parameter.dtype)
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient

    def epsilon(self) -> float:
        """Return the epsilon of all calls so far, those before a restart included."""
        return self._privacy.epsilon(steps=self.count, sample=self.sample)

    def state_dict(self) -> dict[str, Any]:
        """Return what to save with the optimizer, so that a restart goes on counting."""
        return {"count": self.count, "sample": self.sample, **self._privacy.describe()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on counting; the settings must be those of before."""
        now = self.state_dict()
        changed = [name for name in now if name != "count" and now[name] != state.get(name)]
        if changed:
            name = changed[0]
            raise SettingsError(
                f"{name} was {state.get(name)} and is {now[name]}; one epsilon counts equal steps: keep the settings"
            )
        self.count = count("count", state["count"], least=0)

    def _loss(self, parameters: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        *inputs, target = batch
        return self._loss_function(functional_call(self._model, parameters, tuple(inputs)), target)

    def _fetched(self, places: Iterable[int]) -> Batch:
        if self._whole is not None:
            index = torch.tensor(list(places))
            return tuple(tensor[index.to(tensor.device)] for tensor in self._whole)
        return self._fit(default_collate([self._data[place] for place in places]), "this agent")
