"""The table of stacked networks in docs/howto/stacked.md: ``python -m docs.scripts.modules_table``.

Gradients of many small networks, stacked in one vectorized call, against a loop over ordinary modules: ratios of the
medians of interleaved repeats; below 1, stacking is faster.
"""

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import d3gd
from docs.scripts import between

AGENTS, REPEATS, BATCHES = 20, 15, (8, 32)
MODULES: dict[str, Callable[[], nn.Module]] = {
    "linear, 64 to 10": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 10)),
    "perceptron, 64 to 32 to 10": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)),
    "two convolutions and a linear layer, 1,898 parameters": lambda: nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64, 10)),
    ),
}


def medians(*works: Callable[[], object]) -> np.ndarray:
    """Return the processor time of each function, measured in turn, so that disturbances affect all equally."""
    times = []
    for _ in range(REPEATS):
        for work in works:
            began = time.process_time()
            work()
            times.append(time.process_time() - began)
    return np.median(np.reshape(times, (REPEATS, -1))[2:], axis=0)


def ratio(make: Callable[[], nn.Module], dtype: torch.dtype, batch: int) -> float:
    """Return the time of stacked gradients over that of a user's loop: a batch and a backward pass for each module."""
    draw = np.random.default_rng(0)
    data = [(draw.normal(size=(100, 1, 8, 8)), draw.integers(0, 10, 100)) for _ in range(AGENTS)]
    problem = d3gd.problems.torch_module(make().to(dtype), data, loss=cross_entropy, batch=batch)
    x = np.tile(problem.start(), (AGENTS, 1))
    tensors = [(torch.tensor(X, dtype=dtype), torch.tensor(y)) for X, y in data]
    modules = [make().to(dtype) for _ in range(AGENTS)]
    keys = [d3gd.torch.KeyedBatches(100, batch, agent=agent) for agent in range(AGENTS)]

    def loop() -> np.ndarray:
        rows = []
        for module, (X, y), key in zip(modules, tensors, keys, strict=True):
            places = key.at(0)
            module.zero_grad()
            cross_entropy(module(X[places]), y[places]).backward()
            rows.append(torch.cat([p.grad.reshape(-1) for p in module.parameters() if p.grad is not None]))
        return torch.stack(rows).numpy()

    stacked, looped = medians(lambda: problem.gradients(x, 0), loop)
    return float(stacked / looped)


def main() -> None:
    """Write the table."""
    torch.set_num_threads(1)
    lines = ["| module | precision | " + " | ".join(f"batch {batch}" for batch in BATCHES) + " |"]
    lines.append("|---" * (2 + len(BATCHES)) + "|")
    for name, make in MODULES.items():
        for place, dtype in enumerate((torch.float32, torch.float64)):
            cells = [f"{ratio(make, dtype, batch):.2f}" for batch in BATCHES]
            lines.append(f"| {'' if place else name} | {str(dtype).removeprefix('torch.')} | {' | '.join(cells)} |")
    between.write("howto/stacked.md", "modules", "\n".join(lines).replace("|  |", "| |"))


if __name__ == "__main__":
    main()
