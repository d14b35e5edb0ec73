"""What every rank runs: all algorithms in one launch, then one comparison with the numbers of one process."""

import sys
from pathlib import Path

import numpy as np

import d3gd
from d3gd.network import Network

AGENTS = 5
ALGORITHMS = {
    "DiDGD": d3gd.DiDGD(step_size=0.1),
    "DiDGD warmup": d3gd.DiDGD(step_size=d3gd.schedules.Decay(0.1), warmup=7),
    "D3GD decentralized": d3gd.D3GD(step_size=0.1, participation=0.6),
    "D3GD global": d3gd.D3GD(step_size=0.1, rule="global"),
    "D3GD exact": d3gd.D3GD(step_size=0.1, rule="exact"),
    **{
        f"PerronD3GD {rule} {combine}": d3gd.PerronD3GD(step_size=0.1, rule=rule, combine=combine)
        for rule in ("planned", "local", "fixed")
        for combine in ("after", "before")
    },
    **{f"FROST {rule}": d3gd.FROST(step_size=0.05, rule=rule) for rule in ("mixing", "fixed")},
    "PushPull": d3gd.PushPull(step_size=0.05),
}
METRICS = ["stationarity", "disagreement", "loss", "n_min_pi", "perron_error", "design", "accuracy_per_agent", "bytes"]


def part(agents, batch=None):
    """Models of 80 numbers, longer than any sketch; each rank makes the data of its own agents only."""
    return d3gd.problems.sigmoid_classification(
        agents=AGENTS, samples=12, features=8, test_samples=30, batch=batch, block=agents
    )


def runs(transport):
    """Every algorithm, mini-batch until after a second plan, and full batch; one rank has nobody to differ from."""
    graph = d3gd.graphs.erdos_renyi(AGENTS, 0.5, seed=3)
    some = 1 if transport is not None and transport.ranks == 1 else len(ALGORITHMS)
    for batch, iterations in ((3, 62), (None, 15)):
        for name, algorithm in list(ALGORITHMS.items())[:some]:
            problem = part(None, batch) if transport is None else lambda agents, batch=batch: part(agents, batch)
            metrics = [m for m in METRICS if name != "PushPull" or m not in ("perron_error", "design")]
            result = d3gd.run(
                algorithm, graph, problem, iterations=iterations, every=31, metrics=metrics, seed=4, transport=transport
            )
            yield f"{name} {batch}", result


def traffic(transport):
    """The bytes of a few rounds: as the metric counts them, and as they really went from rank to rank."""
    graph = d3gd.graphs.erdos_renyi(AGENTS, 0.5, seed=3)
    net = Network(graph, d3gd.weights.metropolis(graph), transport=transport)
    own = len(net.agents)
    net.exchange(x=np.ones((own, 7)), Y=np.ones((own, AGENTS)), t=np.ones(own))
    net.relay(np.ones((own, AGENTS, 3)), (net.agents[:, None] + np.arange(AGENTS)) % 2 == 0)
    return transport.each(np.array([net.bytes_sent, net.halo.wire_bytes])).sum(axis=0)


def main(name, out):
    with d3gd.transports.connect(name) as transport:
        arrays = {}
        for name, result in runs(transport):
            arrays |= {f"{name}/x": result.x, f"{name}/weights": result.weights.data}
            arrays |= {f"{name}/{metric}": values for metric, values in result.metrics.items()}
        sent = traffic(transport)
        if transport.rank == 0:
            np.savez(Path(out), traffic=sent, ranks=transport.ranks, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
