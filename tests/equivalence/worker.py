"""The worker of every rank: all algorithms in one launch, compared with one process."""

import sys
from pathlib import Path

import numpy as np

import d3gd
from d3gd.network import Network
from tests.helpers.methods import every_method

AGENTS = 5
ALGORITHMS = {
    **every_method(0.05),
    "DiDGD warmup": d3gd.DiDGD(step_size=d3gd.schedules.Decay(0.1), warmup=3),
    "D3GD decentralized, some": d3gd.D3GD(step_size=0.1, participation=0.6),
    "local steps": d3gd.Local(method=d3gd.FROST(step_size=0.02), every=3, outer=0.5),
    "int8": d3gd.Compressed(method=d3gd.PushDIGing(step_size=0.05)),
    "top-k": d3gd.Compressed(method=d3gd.Local(method=d3gd.PerronD3GD(step_size=0.05), every=2), compress="topk:0.1"),
    "ACGT, short cycles": d3gd.ACGT(step_size=0.05, cycle=2, prune=0.8, sharpness=1.0),
}
# Plans wait for sketches to travel, and a gain for trackers to settle; all others have shown after a few iterations
# whether bits agree.
LONG, SHORT = 65, 6
METRICS = ["stationarity", "disagreement", "loss", "n_min_pi", "perron_error", "design", "accuracy_per_agent", "bytes"]


def part(agents, batch=None):
    """Models of 80 numbers, longer than any sketch; each rank makes the data of its own agents only."""
    return d3gd.problems.sigmoid_classification(
        agents=AGENTS, samples=12, features=8, test_samples=30, batch=batch, block=agents
    )


def graph_for(algorithm):
    """A directed graph, or an undirected one for methods that need it."""
    directed = d3gd.graphs.erdos_renyi(AGENTS, 0.5, seed=3)
    if algorithm.needs != "undirected links":
        return directed
    return d3gd.Digraph.from_edges(AGENTS, [*directed.edges, *directed.edges[:, ::-1]])


def runs(transport):
    """Every method in all its variants on up to two ranks, one variant of each on more."""
    for name, algorithm in ALGORITHMS.items():
        moving = name.startswith(("PerronD3GD planned", "PerronD3GD fixed tracked"))
        # Batches are drawn by the problem, alike for all variants of a method: one of each is enough for them.
        around = isinstance(algorithm, d3gd.Compressed | d3gd.Local)
        usual = around or algorithm == type(algorithm)(step_size=0.05) or (moving and name.endswith("discovered"))
        if transport is not None and transport.ranks > 2 and not usual:
            continue
        for batch in (None, 3) if usual and (transport is None or transport.ranks == 2) else (None,):
            problem = part(None, batch) if transport is None else lambda agents, batch=batch: part(agents, batch)
            no_scale = isinstance(algorithm, d3gd.PushPull | d3gd.RFAST | d3gd.PULMDGD)
            unscaled = algorithm.needs in ("undirected links", "all agents") or no_scale
            metrics = [m for m in METRICS if not unscaled or m not in ("perron_error", "design")]
            result = d3gd.run(
                algorithm,
                graph_for(algorithm),
                problem,
                iterations=LONG if moving else SHORT,
                every=30,
                metrics=metrics,
                seed=4,
                transport=transport,
            )
            yield f"{name} {batch}", result


def traffic(transport):
    """The bytes of a few rounds: as the metric counts them, and as they really went from rank to rank."""
    graph = d3gd.graphs.erdos_renyi(AGENTS, 0.5, seed=3)
    net = Network(graph, d3gd.weights.metropolis(graph), transport=transport)
    own = len(net.agents)
    net.exchange(x=np.ones((own, 7)), Y=np.ones((own, AGENTS)), t=np.ones(own))
    net.relay(np.ones((own, AGENTS, 3)), (net.agents[:, None] + np.arange(AGENTS)) % 2 == 0)
    net.survey()
    return transport.each(np.array([net.bytes_sent, net.halo.wire_bytes])).sum(axis=0)


def survey(transport):
    """What every rank finds, given the weights of its own agents only: graph, weights, rounds and bytes in one row."""
    graph = d3gd.graphs.erdos_renyi(12, 0.2, seed=1)
    A = d3gd.weights.metropolis(graph)
    own = np.isin(graph.targets, Network(graph, A, transport=transport).agents)
    A.data[~own] = np.nan
    net = Network(graph, A, needs="in-neighbours", transport=transport)
    found = net.survey()
    sent = transport.each(np.array(net.bytes_sent)).sum()
    return transport.each(np.concatenate([found.graph.keys, found.a0, [found.rounds, sent]]))


def main(out):
    with d3gd.transports.connect() as transport:
        arrays = {}
        for name, result in runs(transport):
            arrays |= {f"{name}/x": result.x, f"{name}/weights": result.weights.data}
            arrays |= {f"{name}/{metric}": values for metric, values in result.metrics.items()}
        sent, found = traffic(transport), survey(transport)
        if transport.rank == 0:
            np.savez(Path(out), traffic=sent, survey=found, ranks=transport.ranks, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
