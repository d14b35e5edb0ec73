"""Gradients of many small networks: stacked in one vectorized call, against a loop over ordinary modules.

python benchmarks/modules.py

Prints the medians of interleaved repeats, and their ratio: below 1, stacking is faster.
"""

import time

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import d3gd

AGENTS, REPEATS, BATCHES = 20, 15, (8, 32)
MODULES = {
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 10)),
    "perceptron": lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)),
    "convolutional": lambda: nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(64, 10)),
    ),
}


def medians(*works):
    """Processor time of each function on one thread, measured in turn, so that disturbances affect all equally."""
    times = []
    for _ in range(REPEATS):
        for work in works:
            began = time.process_time()
            work()
            times.append(time.process_time() - began)
    return np.median(np.reshape(times, (REPEATS, -1))[2:], axis=0)


torch.set_num_threads(1)
for name, make in MODULES.items():
    for dtype in (torch.float32, torch.float64):
        for batch in BATCHES:
            draw = np.random.default_rng(0)
            data = [(draw.normal(size=(100, 1, 8, 8)), draw.integers(0, 10, 100)) for _ in range(AGENTS)]
            problem = d3gd.problems.torch_module(make().to(dtype), data, loss=cross_entropy, batch=batch)
            x = np.tile(problem.start(), (AGENTS, 1))
            tensors = [(torch.tensor(X, dtype=dtype), torch.tensor(y)) for X, y in data]
            modules = [make().to(dtype) for _ in range(AGENTS)]
            keys = [d3gd.torch.KeyedBatches(100, batch, agent=agent) for agent in range(AGENTS)]

            def loop(modules=modules, tensors=tensors, keys=keys):
                """A user's loop: a batch, a backward pass and a flat gradient for each module."""
                rows = []
                for module, (X, y), key in zip(modules, tensors, keys, strict=True):
                    places = key.at(0)
                    module.zero_grad()
                    cross_entropy(module(X[places]), y[places]).backward()
                    rows.append(torch.cat([p.grad.reshape(-1) for p in module.parameters()]))
                return torch.stack(rows).numpy()

            stacked, looped = medians(lambda p=problem, x=x: p.gradients(x, 0), loop)
            kind = f"{name:14s} {str(dtype).removeprefix('torch.')}  batch {batch:3d}"
            print(
                f"{kind}  stacked {stacked * 1e3:7.2f} ms  loop {looped * 1e3:7.2f} ms  ratio {stacked / looped:.2f}",
                flush=True,
            )
