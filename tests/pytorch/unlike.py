"""The worker of ranks that do not do the same: what they are told, and what works all the same."""

import sys
from pathlib import Path

import numpy as np
import torch

import d3gd
from d3gd.torch import DecentralizedOptimizer, network

BATCHES = (3, 7, 0)  # of each rank
ALGORITHMS = {
    "DiDGD": d3gd.DiDGD(step_size=0.1),
    "PerronD3GD": d3gd.PerronD3GD(step_size=0.1),
    "FROST": d3gd.FROST(step_size=0.02),
}


def made(transport, algorithm=ALGORITHMS["PerronD3GD"], **options):
    """A model with as many parameters as coordinates, and its optimizer."""
    model = torch.nn.Parameter(torch.arange(4, dtype=torch.float64))
    net = network(d3gd.graphs.ring(transport.ranks), transport=transport)
    return model, DecentralizedOptimizer([model], algorithm, net, **options)


def descend(model, opt, *, weight=1.0):
    """A step on a quadratic of the rank's own."""
    opt.zero_grad()
    (0.5 * weight * ((model - opt.agent) ** 2).sum()).backward()
    opt.step()


def joined(transport, algorithm):
    model, opt = made(transport, algorithm)
    schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
    for _ in range(2):
        with opt.join(schedule):
            for _ in range(BATCHES[transport.rank]):
                descend(model, opt)
                schedule.step()
    return model, opt


def by_hand(transport, algorithm):
    model, opt = made(transport, algorithm)
    schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
    for k in range(2 * max(BATCHES)):
        descend(model, opt, weight=float(k % max(BATCHES) < BATCHES[transport.rank]))
        schedule.step()
    return model, opt


def scaled(transport, steps, overflows):
    """Steps with a loss scale, of which one overflows on one rank."""
    model, opt = made(transport)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for k in range(steps):
        opt.zero_grad()
        scaler.scale(0.5 * ((model - opt.agent) ** 2).sum()).backward()
        if k == overflows and transport.rank == 1:
            model.grad[0] = float("inf")
        scaler.step(opt)
        scaler.update()
    return model, opt


def told(action):
    """What a rank is told; ranks that are told elsewhere hear who knows."""
    try:
        action()
    except d3gd.D3GDError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def other_lr(transport, at):
    model, opt = made(transport)
    for k in range(40):
        if k == at and transport.rank == 1:
            opt.param_groups[0]["lr"] = 0.05
        descend(model, opt)


def other_iteration(transport):
    model, opt = made(transport)
    states = []
    for _ in range(3):
        states.append(opt.state_dict())
        descend(model, opt)
    opt.load_state_dict(states[2 if transport.rank == 1 else 1])


def other_version(transport):
    _, opt = made(transport)
    state = opt.state_dict()
    if transport.rank == 1:
        state["version"][0] += 1
    opt.load_state_dict(state)


def no_file(transport):
    model, opt = made(transport)
    state = opt.state_dict()
    if transport.rank != 1:
        opt.load_state_dict(state)
    descend(model, opt)


def kept_scheduler(transport):
    model, opt = made(transport)
    schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
    with opt.join():
        for _ in range(BATCHES[transport.rank]):
            descend(model, opt)
            schedule.step()


TOLD = {
    "lr at once": lambda transport: other_lr(transport, 0),
    "lr later": lambda transport: other_lr(transport, 5),
    "iteration": other_iteration,
    "version": other_version,
    "file": no_file,
    "scheduler": kept_scheduler,
}


def main(out):
    with d3gd.transports.connect(timeout=20) as transport:
        arrays = {}
        for name, algorithm in ALGORITHMS.items():
            for how in (joined, by_hand):
                model, opt = how(transport, algorithm)
                arrays[f"{name} {how.__name__}"] = transport.each(model.detach().numpy())
                arrays[f"{name} {how.__name__} iteration"] = transport.each(np.array(opt.iteration))
        for name, steps in (("skipped", (4, 2)), ("fewer", (3, -1))):
            model, opt = scaled(transport, *steps)
            arrays[name] = transport.each(model.detach().numpy())
            arrays[f"{name} counts"] = transport.each(np.array([opt.iteration, opt.skipped]))
        for name, action in TOLD.items():
            arrays[f"told {name}"] = np.array(transport.texts(told(lambda: action(transport))))  # noqa: B023
        if transport.rank == 0:
            np.savez(Path(out), **arrays)


def one_nan():
    """A NaN on one rank ends all, in words, before it is sent."""
    with d3gd.transports.connect(timeout=20) as transport:
        model, opt = made(transport)
        for k in range(4):
            descend(model, opt, weight=float("nan") if k == 2 and transport.rank == 1 else 1.0)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) > 1 else one_nan()
