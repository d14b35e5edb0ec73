"""The worker of every rank: PyTorch's loop for several algorithms, with the state saved, loaded and continued."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.optim import SGD, AdamW
from torch.utils.data import DataLoader, TensorDataset

import d3gd
from d3gd.torch import DecentralizedOptimizer, KeyedBatches, network

AGENTS, BATCH, STEPS, SAVED, SEED = 3, 6, 14, 9, 5
STEP_SIZE, DROP = 0.2, 4  # a scheduler halves the step size every so many steps


def halved(k):
    return STEP_SIZE * 0.5 ** (k // DROP)


# The stacked run has the step sizes as a schedule, the optimizer gets them from a scheduler of torch.
ALGORITHMS = {"DiDGD": d3gd.DiDGD, "PerronD3GD": d3gd.PerronD3GD}
# Agents with an optimizer of their own: in the stacked run, and PyTorch's. A bias before batch norm has gradients that
# are nothing but rounding errors, so that with a small eps AdamW would make steps of them.
LOCAL = {
    "momentum": (d3gd.Momentum(momentum=0.8, weight_decay=0.1), partial(SGD, momentum=0.8, weight_decay=0.1)),
    "AdamW": (d3gd.AdamW(eps=1e-3), partial(AdamW, eps=1e-3)),
}
CASES = [(name, None, dtype) for name in ALGORITHMS for dtype in ("float64", "float32")]
CASES += [(name, local, "float64") for name in ALGORITHMS for local in LOCAL]
CASES += [("PerronD3GD", "int8", "float64")]
DTYPES = {"float64": torch.float64, "float32": torch.float32}


def called(name, local, dtype):
    return f"{name} {local} {dtype}"


def stacked(name, local):
    """The method of the stacked run, with a schedule."""
    method = ALGORITHMS[name](step_size=halved)
    if local == "int8":
        return d3gd.Compressed(method=method, compress=local)
    return method if local is None else d3gd.Local(method=method, optimizer=LOCAL[local][0])


def optimizer(model, name, local, transport):
    """The same as an optimizer."""
    net = network(graph(), transport=transport)
    if local not in LOCAL:
        own = ALGORITHMS[name](step_size=STEP_SIZE)
        return net, DecentralizedOptimizer(model.parameters(), own, net, compress=local)
    make = partial(LOCAL[local][1], lr=STEP_SIZE)
    return net, DecentralizedOptimizer(model.parameters(), ALGORITHMS[name](step_size=1), net, local=make)


def graph():
    return d3gd.Digraph.from_edges(3, [(0, 1), (1, 2), (2, 0), (0, 2)])


def module(dtype, seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(72, 3)
    ).to(dtype)


def part(agent):
    """Data of one agent, sizes and labels unlike those of others."""
    draw = np.random.default_rng([7, agent])
    return draw.normal(size=(20 + 3 * agent, 1, 8, 8)), draw.integers(agent, 3, size=20 + 3 * agent)


def problem(dtype, agents=range(AGENTS)):
    """The networks of some agents, stacked."""
    return d3gd.problems.torch_module(
        module(dtype),
        [part(agent) for agent in agents],
        loss=cross_entropy,
        batch=BATCH,
        seed=SEED,
        test=part(0),
        agent_ids=list(agents),
    )


def run(transport=None):
    """The engine's loop, in one process or with each agent's data on its rank only."""
    made = problem(torch.float64) if transport is None else lambda agents: problem(torch.float64, agents)
    return d3gd.run(d3gd.PerronD3GD(step_size=0.2), graph(), made, iterations=STEPS, every=7, transport=transport)


def train(model, opt, dtype, steps):
    """Yield the model before every step and after the last."""
    X, y = part(opt.agent)
    keys = KeyedBatches(len(y), BATCH, agent=opt.agent, seed=SEED, start=opt.iteration, stop=steps)
    scheduler = torch.optim.lr_scheduler.StepLR(opt, DROP, gamma=0.5, last_epoch=opt.iteration - 1)
    for inputs, target in DataLoader(TensorDataset(torch.tensor(X, dtype=dtype), torch.tensor(y)), batch_sampler=keys):
        yield flat(model)
        opt.zero_grad()
        cross_entropy(model(inputs), target).backward()
        opt.step()
        scheduler.step()
    yield flat(model)


def flat(model):
    return np.concatenate([p.detach().double().numpy().ravel() for p in model.parameters()])


def main(out):
    with d3gd.transports.connect() as transport:
        arrays = {}
        for words in CASES:
            name, local, dtype_name = words
            case, dtype = called(*words), DTYPES[dtype_name]
            # Only the first process has the right start: the others are to get it.
            model = module(dtype, seed=transport.rank)
            net, opt = optimizer(model, name, local, transport)
            seen = list(train(model, opt, dtype, SAVED))
            path = Path(out).with_name(f"{case} {opt.agent}.pt")
            torch.save(opt.state_dict(), path)
            seen += list(train(model, opt, dtype, STEPS))[1:]
            arrays[case] = transport.each(np.stack(seen))
            arrays[f"{case} bytes"] = transport.each(np.array(net.bytes_sent))

            again = module(dtype, seed=99)
            net, opt = optimizer(again, name, local, transport)
            state = torch.load(path, weights_only=True)
            assert all(isinstance(value, torch.Tensor) for value in state.values())
            opt.load_state_dict(state)
            arrays[f"{case} again"] = transport.each(np.stack(list(train(again, opt, dtype, STEPS))))
            arrays[f"{case} again bytes"] = transport.each(np.array(net.bytes_sent))

        before = [buffer.double().numpy().copy() for buffer in again.buffers() if buffer.is_floating_point()]
        opt.mix_buffers(again)
        after = [buffer.double().numpy() for buffer in again.buffers() if buffer.is_floating_point()]
        arrays["buffers before"] = transport.each(np.concatenate(before))
        arrays["buffers after"] = transport.each(np.concatenate(after))
        arrays["weights"] = net.halo.everywhere(opt.algorithm.weights(net, opt._steps.memory))
        result = run(transport)
        arrays |= {"run x": result.x, **{f"run {name}": values for name, values in result.metrics.items()}}
        if transport.rank == 0:
            np.savez(Path(out), **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
