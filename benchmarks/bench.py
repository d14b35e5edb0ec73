"""All measurements and targets as a table: make bench.

python benchmarks/bench.py [--quick] [--training] [--out docs/results/benchmarks.md]
"""

import argparse
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import bandwidth
import batched
import ddp
import metrics_cost
import numpy as np
import overhead
import rivals
import rounds
import sites
from cases import Steps, fair, interleaved, quiet, regular, seconds

import d3gd
from d3gd.kernels.threads import cores

OUT = Path(__file__).parent.parent / "docs" / "results" / "benchmarks.md"
RIVALS = {"plain NumPy": 4, "decent-bench, DGD": 12, "disropt, SubgradientMethod": 200}


class Table:
    """Targets, measurements, and whether targets are met."""

    def __init__(self):
        self.rows = []

    def add(self, what, wanted, found, met, unit=""):
        verdict = "" if met is None else "met" if met else "**not met**"
        shown = found if isinstance(found, str) else f"{found:.4g}{unit}"
        self.rows.append(f"| {what} | {wanted} | {shown} | {verdict} |")
        print(f"{what:66s} {wanted:>10s} {shown:>10s} {verdict}", flush=True)

    def text(self):
        return "\n".join(["| what | target | measured | |", "|---|---|---|---|", *self.rows])


def machine():
    """The processor, its cores and the versions; nothing that names the machine."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    parts = [f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "torch")]
    load = os.getloadavg()[0]
    return (
        f"{model}, {cores()} cores, Python {platform.python_version()}, {', '.join(parts)}; "
        f"load before the start {load:.1f}"
    )


def starts():
    """Seconds to import d3gd and to show the help, the best of a few."""
    code = "import time; t = time.perf_counter(); import d3gd; print(time.perf_counter() - t)"
    imports = [float(_output([sys.executable, "-c", code])) for _ in range(5)]
    helps = []
    for _ in range(5):
        helps.append(seconds(lambda: _output([sys.executable, "-m", "d3gd", "--help"]), 1))
    return min(imports), min(helps)


def _output(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def big():
    """The largest network, built again."""
    return regular(100_000, 8, 8, 10)


def single(quick):
    """Time of a step of Di-DGD in float64 over that in float32, n = 100,000."""
    case = regular(20_000 if quick else 100_000, 8, 8, 10)
    net = case.net()
    x = np.random.default_rng(0).normal(size=(case.graph.n, 64))
    narrow = x.astype(np.float32)
    works = {
        "double": lambda: (net.mix(net.a0, net.exchange(x=x).x), case.problem.gradients(x)),
        "single": lambda: (net.mix(net.a0, net.exchange(x=narrow).x), case.problem.gradients(narrow)),
    }
    with quiet():
        taken = interleaved(works, times=1, repeats=3 if quick else 9)
    return float(np.median(taken["double"] / taken["single"]))


def training(table, quick):
    """Whole training steps, and the memory of optimizers."""
    steps, why = ddp.measure(quick)
    for (ranks, numbers), taken in steps.items():
        for name in (*ddp.TARGETS, *ddp.APART, *ddp.MORE, *ddp.FLOORS, *([] if why else [ddp.RIVAL])):
            wanted, ratio = ddp.TARGETS.get(name), taken[name] / taken["DDP"]
            what = f"training step, {ranks} ranks, {numbers / 1e6:g} million parameters, {name}, of DDP"
            table.add(what, f"<= {wanted}" if wanted else "", ratio, wanted and ratio <= wanted, " x")
    if why:
        table.add(f"training step, {ddp.RIVAL}", "", why, None)
    copies = ddp.memory()
    for name in ddp.OURS:
        what = f"memory, 10 million parameters, {name}, of AdamW's {copies['AdamW']:.2g} copies of them"
        table.add(what, "<= 1", copies[name] / copies["AdamW"], copies[name] <= copies["AdamW"], " x")


def replaced(page, rows):
    """Return a page with other rows in place of those of training steps and optimizers."""
    old = ("| training step", "| memory, 10 million parameters")
    lines = page.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(old))
    kept = [line for line in lines if not line.startswith(old)]
    return "\n".join([*kept[:first], *rows, *kept[first:]]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--training", action="store_true", help="training steps alone; replaces their rows in the page")
    options = parser.parse_args()
    quick, table, where = options.quick, Table(), machine()
    print(where)
    fair()
    if options.training:
        training(table, quick)
        options.out.write_text(replaced(options.out.read_text(), table.rows))
        return

    loading, helping = starts()
    table.add("`import d3gd`, seconds", "<= 0.3", loading, loading <= 0.3)
    table.add("`d3gd --help`, seconds", "<= 0.5", helping, helping <= 0.5)

    (found, speedup, share), (kept, kept_speedup, kept_share) = overhead.small(quick)
    for name, value in found.items():
        wanted = overhead.TARGETS[name]
        table.add(f"overhead, n = 20, {name}", f"<= {wanted}", value, value <= wanted)
        table.add("... plain version with memory kept", "", kept[name], None)
    table.add("gradients, n = 20, of plain ones", "", share, None)
    table.add("... plain version with memory kept", "", kept_share, None)
    table.add("iterations/s, n = 20, of plain NumPy (core seconds)", ">= 4", speedup, speedup >= 4, " x")
    table.add("... plain version with memory kept", "", kept_speedup, None, " x")

    for n, shape in ((1000, (10, 10, 100)), (100_000, (8, 8, 10))):
        found, ratio = overhead.large(n, *shape, quick)
        for name, value in found.items():
            table.add(f"overhead, n = {n:,}, {name}", "", value, None)
    table.add("PerronD3GD, n = 100,000, of Di-DGD", "<= 1.5", ratio, ratio <= 1.5, " x")

    share, speed = bandwidth.bandwidth(100_000, 64, quick)
    table.add("mixing, n = 100,000, of the copy's bandwidth", ">= 0.5", share, share >= 0.5)
    table.add("mixing, n = 100,000, GB/s", "", speed / 1e9, None)
    with quiet():
        for name, make in {
            "Di-DGD": lambda: Steps(big(), d3gd.DiDGD(step_size=0.1, perron="known")),
            "PerronD3GD": lambda: Steps(big(), d3gd.PerronD3GD(step_size=0.1, rule="fixed", perron="known")),
        }.items():
            peak, state = bandwidth.step_memory(make)
            table.add(f"memory, n = 100,000, {name}, of its state", "<= 3", peak / state, peak <= 3 * state, " x")
    table.add("float32, n = 100,000, speed of float64", "", single(quick), None, " x")

    costs, names = metrics_cost.measure(quick)
    for n, value in costs.items():
        table.add(f"metrics at every=10, n = {n:,}, of the steps between", "<= 1", value, value <= 1)

    growth = bandwidth.growth(quick)
    lines = ["| n | links | ns per link | peak bytes per link |", "|---|---|---|---|"]
    for n, links, time, peak, _ in growth:
        lines.append(f"| {n:,} | {links:,} | {1e9 * time:.0f} | {peak:.0f} |")

    remarks = []
    for name, kind, ratio, why in rivals.measure(quick):
        wanted = RIVALS.get(name)
        if ratio is None:
            table.add(f"iterations/s, of {name}", f">= {wanted}" if wanted else "", why, None)
            remarks.append(f"{name}: {why}")
            continue
        met = None if wanted is None else ratio >= wanted
        table.add(f"iterations/s, of {name} {kind}", f">= {wanted}" if wanted else "", ratio, met, " x")

    travel = rounds.measure(quick)
    for row in travel["rounds"]:
        what = f"round, {row['transport']}, {row['what']}, {row['bytes'] / 1e6:.1f} MB, of bare"
        ratio = row["round"] / row["bare"]
        table.add(what, "<= 1.5", ratio, ratio <= 1.5, " x")
    overlap = ["| transport | a message | work | work alone, ms | round, then work, ms | round during work, ms |"]
    overlap += ["|---|---|---|---|---|---|"]
    for row in travel["overlaps"]:
        times = " | ".join(f"{1e3 * row[name]:.2f}" for name in ("alone", "after", "during"))
        overlap.append(f"| {row['transport']} | {row['bytes'] / 1e6:.0f} MB | {row['work']} | {times} |")

    for row in sites.measure(quick):
        share = row["bare"] / row["round"]
        what = f"round between sites, {row['bytes'] / 1e6:.1f} MB, throughput of bare pyzmq with CURVE"
        table.add(what, ">= 0.7", share, share >= 0.7, " x")

    training(table, quick)
    seeds = batched.measure(quick)
    text = (
        (Path(__file__).parent / "page.md")
        .read_text()
        .format(
            machine=where,
            batch=ddp.BATCH,
            table=table.text(),
            growth="\n".join(lines),
            overlap="\n".join(overlap),
            metrics=", ".join(f"`{name}`" for name in names),
            after=f"{seeds['one after the other']:.2f}",
            processes=f"{seeds['two processes']:.2f}",
        )
    )
    options.out.write_text(text)
    print(f"written to {options.out.name}")


if __name__ == "__main__":
    main()
