"""A whole training step, in processor time, against DDP with gloo and decent-dp; and the memory of the optimizers.

torchrun --nproc-per-node 2 benchmarks/ddp.py [--quick | --rival | --memory NAME]

`measure` and `memory` start it; every line that rank 0 prints is JSON. The rival runs in its own environment, so that
d3gd is imported only where it is measured.
"""

import json
import os
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

SIZES = (100_000, 1_000_000, 10_000_000)  # parameters, in float32
RANKS = (2, 4)
BATCH, CLASSES, STEP_SIZE = 32, 10, 0.01
RIVAL, VERSION = "decent-dp", "0.2.3"
# By default the C library returns the memory of gradients to the system or keeps it, as it happens to lie: 10 ms of
# page faults per step at 10 million parameters, in any library. Here it keeps what it has, for all of them.
MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(1 << 32), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}


def measure(quick):
    """Return rows of ranks, numbers of parameters and processor seconds per step, for each library."""
    found = {}
    for ranks in RANKS:
        for row in _launched(sys.executable, ranks, *["--quick"] * quick):
            found[ranks, row["numbers"]] = row["seconds"]
    python, why = _rival()
    for ranks in RANKS if python else ():
        for row in _launched(python, ranks, "--rival", *["--quick"] * quick):
            # In units of DDP, which is measured next to it in that environment as well.
            seconds, own = row["seconds"], found[ranks, row["numbers"]]
            own[RIVAL] = seconds[RIVAL] / seconds["DDP"] * own["DDP"]
    return found, why


def memory():
    """Return the peak memory of each optimizer beyond model and gradients, in copies of the parameters.

    The median of some launches: where the C library keeps a tensor of half a copy is different each time.
    """
    from statistics import median

    runs = [{name: _launched(sys.executable, 2, "--memory", name)[0]["copies"] for name in WEIGHED} for _ in range(5)]
    return {name: median(run[name] for run in runs) for name in WEIGHED}


def _rival():
    from rivals import environment

    return environment(RIVAL, sys.executable, [f"{RIVAL}=={VERSION}", _torch(), "numpy"])


def _torch():
    """The same torch for the rival."""
    import torch

    return "torch==" + torch.__version__.split("+")[0]


def _launched(python, ranks, *options):
    command = [python, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), __file__, *options]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **({} if "--memory" in options else MEMORY)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False, env=environment)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    complete = "--rival" in options and len(rows) == len(SIZES)  # it sometimes aborts when it ends
    if done.returncode and not complete:
        raise RuntimeError(done.stderr[-3000:])
    return rows


def network(numbers):
    """A multilayer perceptron with about as many parameters."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    width = round((numbers / 2) ** 0.5)
    layers = nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES)
    return nn.Sequential(*layers), torch.randn(BATCH, width), torch.arange(BATCH) % CLASSES


def trained(make, numbers):
    """Return a training step: forward, backward, step; ``make`` returns what runs forward, and its optimizer."""
    from torch.nn.functional import cross_entropy

    module, inputs, target = network(numbers)
    model, opt = make(module)

    def step():
        if opt is not None:
            opt.zero_grad()
        cross_entropy(model(inputs), target).backward()
        if opt is not None:
            opt.step()

    return step


def _sgd(parameters):
    import torch

    return torch.optim.SGD(parameters, lr=STEP_SIZE)


def _ddp(module):
    from torch.nn.parallel import DistributedDataParallel

    return DistributedDataParallel(module), _sgd(module.parameters())


def _decent_dp(module):
    from decent_dp.ddp import DecentralizedDataParallel

    # On its ring, ranks hear one neighbour per step; parameters are stepped and mixed within backward().
    named = partial(DecentralizedDataParallel, optim_fn=lambda pairs: _sgd([p for _, p in pairs]))
    return named(module, topology="ring").train(), None


class _Floor:
    """SGD, and after every so many steps the messages that ours send, over bare gloo: neither mixed nor corrected."""

    def __init__(self, module, every):
        import torch
        from torch import distributed

        self._sgd, self._every, self._taken = _sgd(module.parameters()), every, 0
        rank, ranks = distributed.get_rank(), distributed.get_world_size()
        shifts = [2**power for power in range(ranks.bit_length() - 1)]  # of exponential(ranks)
        self._peers = [((rank + shift) % ranks, (rank - shift) % ranks) for shift in shifts]
        self._sent, *self._heard = (torch.zeros(sum(p.numel() for p in module.parameters())) for _ in (0, *shifts))
        self.zero_grad = self._sgd.zero_grad

    def step(self):
        from torch import distributed

        self._sgd.step()
        self._taken += 1
        if self._taken % self._every == 0:
            pairs = list(zip(self._peers, self._heard, strict=True))
            works = [distributed.irecv(row, source) for (_, source), row in pairs]
            for work in works + [distributed.isend(self._sent, target) for (target, _), _ in pairs]:
                work.wait()


def _floor(every, module):
    return module, _Floor(module, every)


def _adamw(module):
    import torch

    return module, torch.optim.AdamW(module.parameters(), lr=STEP_SIZE)


def _ours(algorithm, settings, every, transport, module):
    import d3gd

    net = d3gd.torch.network(d3gd.graphs.exponential(transport.ranks), transport=transport)
    method = getattr(d3gd, algorithm)(step_size=STEP_SIZE, **settings)
    made = partial(d3gd.torch.DecentralizedOptimizer, algorithm=method, network=net, every=every)
    return module, made(module.parameters())


def _over_gloo(make, transport, module):
    """The same without shared memory, as between machines."""
    module, opt = make(module)
    step = opt.step

    def apart():
        near, transport._near = transport._near, set()
        step()
        transport._near = near

    opt.step = apart
    return module, opt


OURS = {"Di-DGD": ("DiDGD", {}, 1), "PerronD3GD": ("PerronD3GD", {}, 1)}
LOCAL = {"PerronD3GD, every=8": ("PerronD3GD", {}, 8)}
MORE = {
    "PerronD3GD, momentum": ("PerronD3GD", {"momentum": 0.9}, 1),
    "quasi-global Adam": ("QGAdam", {}, 1),
}
APART = {f"{name}, gloo alone": how for name, how in (OURS | LOCAL).items()}
WEIGHED = ("AdamW", *OURS)
FLOORS = {"bare gloo": 1, "bare gloo, every=8": 8}
TARGETS = {**dict.fromkeys(OURS, 1.1), **dict.fromkeys(LOCAL, 0.6)}


def compare(makes, ranks, quick, report):
    """Alternate between libraries, and report the processor time of a step, the mean over ranks."""
    import numpy as np

    for numbers in SIZES:
        steps = {name: trained(make, numbers) for name, make in makes.items()}
        times = max(8, min(96, 20_000_000 // numbers // 8 * 8)) // (2 if quick else 1)
        for step in steps.values():
            for _ in range(8):
                step()
        taken = {name: [] for name in steps}
        for _ in range(6 if quick else 12):
            for name, step in steps.items():
                ranks.any(False)
                began = time.process_time()
                for _ in range(times):
                    step()
                taken[name].append((time.process_time() - began) / times)
        seconds = {name: float(ranks.each(np.array(np.median(each))).mean()) for name, each in taken.items()}
        report({"numbers": numbers, "seconds": seconds})


def peak(make, report):
    """Report the peak of resident memory in some steps above that of model and gradients."""
    module, inputs, target = network(SIZES[-1])
    size = sum(p.numel() * p.element_size() for p in module.parameters())

    def backward():
        from torch.nn.functional import cross_entropy

        cross_entropy(module(inputs), target).backward()

    def resident(what):
        return 1024 * int(re.search(rf"{what}:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])

    warm = trained(make, SIZES[1])  # what libraries load does not count
    for _ in range(2):
        warm()
    backward()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    _, opt = make(module)
    for _ in range(4):
        opt.step()
        opt.zero_grad()
        backward()
    report({"copies": (resident("VmHWM") - before) / size})


class Bare:
    """What is needed of a transport, where d3gd is not installed."""

    def __init__(self):
        from torch import distributed

        distributed.init_process_group("gloo")
        self.rank, self.ranks = distributed.get_rank(), distributed.get_world_size()

    def each(self, value):
        import numpy as np
        from torch import distributed, tensor

        found = [tensor(0.0) for _ in range(self.ranks)]
        distributed.all_gather(found, tensor(float(value)))
        return np.array(found)

    def any(self, flag):
        self.each(flag)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        from torch import distributed

        distributed.destroy_process_group()


def main(options):
    import torch

    torch.set_num_threads(1)
    rival = "--rival" in options
    if rival:
        connected = Bare()
    else:
        import d3gd

        connected = d3gd.transports.connect()
    with connected as ranks:

        def report(row):
            if ranks.rank == 0:
                print(json.dumps(row), flush=True)

        ours = {name: partial(_ours, *how, ranks) for name, how in (OURS | LOCAL | MORE).items()}
        apart = {name: partial(_over_gloo, partial(_ours, *how, ranks), ranks) for name, how in APART.items()}
        if "--memory" in options:
            peak({"AdamW": _adamw, **ours}[options[options.index("--memory") + 1]], report)
        else:
            floors = {name: partial(_floor, every) for name, every in FLOORS.items()}
            theirs = {RIVAL: _decent_dp} if rival else ours | apart | floors
            compare({"DDP": _ddp, **theirs}, ranks, "--quick" in options, report)


if __name__ == "__main__":
    if "RANK" in os.environ:
        main(sys.argv[1:])
    else:
        for row in measure(quick=True)[0].items():
            print(row)
        print(memory())
