"""The worker of every rank: each method is trained on arrays and on a device, and continued on the other one."""

import sys
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import d3gd
from d3gd.torch import DecentralizedOptimizer, device, network

STEPS, SAVED = 7, 3
adamw = partial(torch.optim.AdamW, lr=0.01)

# What coordinate-wise methods are, and what the optimizer has around them.
CASES = {
    "DiDGD": (d3gd.DiDGD(step_size=0.1), {}),
    "PerronD3GD": (d3gd.PerronD3GD(step_size=0.1), {}),
    "fixed": (d3gd.PerronD3GD(step_size=0.1, rule="fixed"), {}),
    "tracked": (d3gd.PerronD3GD(step_size=0.1, rule="fixed", perron="tracked"), {}),
    "momentum": (d3gd.PerronD3GD(step_size=0.1, momentum=0.5), {}),
    "QGMomentum": (d3gd.QGMomentum(step_size=0.1), {}),
    "QGAdam": (d3gd.QGAdam(step_size=0.01), {}),
    "SGP": (d3gd.SGP(step_size=0.1), {}),
    "PushPull": (d3gd.PushPull(step_size=0.1), {}),
    "every": (d3gd.PerronD3GD(step_size=0.1, momentum=0.5), {"every": 2}),
    "QGAdam every": (d3gd.QGAdam(step_size=0.01), {"every": 2}),
    "local": (d3gd.PerronD3GD(step_size=1), {"local": adamw}),
    "compress": (d3gd.PerronD3GD(step_size=0.1), {"compress": "int8"}),
    "all": (d3gd.DiDGD(step_size=1), {"compress": "topk:0.2", "local": adamw, "every": 2}),
}


LAUNCHED = ["DiDGD", "momentum", "SGP", "all"]  # in processes of their own; threads do the others


@contextmanager
def on_the_device(wanted=True):
    """Take the CPU for an accelerator, in all threads."""
    before = device.accelerator
    device.accelerator = (lambda parameters: torch.device("cpu")) if wanted else before
    try:
        yield
    finally:
        device.accelerator = before


def model(dtype=torch.float32):
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    for parameter in net.parameters():  # threads share the random numbers of PyTorch
        parameter.data = torch.arange(parameter.numel()).sin().reshape(parameter.shape)
    return net.to(dtype)


def data(rank, dtype=torch.float32):
    draws = torch.Generator().manual_seed(rank)
    return torch.randn(6, 4, generator=draws).to(dtype), torch.arange(6) % 3


def vector(net):
    return nn.utils.parameters_to_vector(net.parameters()).detach().clone()


def trained(transport, case, *, steps=STEPS, state=None, dtype=torch.float32):
    """Train on this rank's data.

    Returns:
        The parameters before and after every step, the states after some steps and after all, and the bytes received.
    """
    algorithm, options = CASES[case]
    net, (inputs, target) = model(dtype), data(transport.rank, dtype)
    agent = network(d3gd.graphs.exponential(transport.ranks), transport=transport)
    opt = DecentralizedOptimizer(net.parameters(), algorithm, agent, **options)
    if state is not None:
        opt.load_state_dict(state)
    seen, states = [vector(net)], []
    for k in range(steps):
        if k == SAVED:
            states.append(opt.state_dict())
        opt.zero_grad()
        cross_entropy(net(inputs), target).backward()
        opt.step()
        seen.append(vector(net))
    return torch.stack(seen), [*states, opt.state_dict()], agent.bytes_sent


def main(out):
    with d3gd.transports.connect() as transport:
        arrays = {}
        for case, there in product(LAUNCHED, (False, True)):
            with on_the_device(there):
                path, [half, _], sent = trained(transport, case)
            arrays[f"{case} {there}"] = transport.each(path.numpy())
            arrays[f"{case} {there} bytes"] = transport.each(np.array(sent))
            for later in (False, True):
                with on_the_device(later):
                    rest, *_ = trained(transport, case, steps=STEPS - SAVED, state=half)
                arrays[f"{case} {there} then {later}"] = transport.each(rest.numpy())
        if transport.rank == 0:
            np.savez(Path(out), **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
