"""The worker of every rank on unreliable networks, and for methods that prune links."""

import sys
from pathlib import Path

import d3gd

AGENTS = 6
GRAPH = d3gd.graphs.erdos_renyi(AGENTS, 0.6, seed=1)
CONDITIONS = {
    "all": d3gd.Conditions(
        loss=0.2,
        links=0.8,
        graphs=[d3gd.Digraph.from_edges(AGENTS, GRAPH.edges[i::2]) for i in range(2)],
        period=4,
        pause=0.1,
        absences=[(1, 15, 25)],
        delay=3,
        biased=True,
    ),
    "at once": d3gd.Conditions(loss=0.3, pause=0.2, biased=True),
}
METHODS = {
    "DiDGD averaged": d3gd.DiDGD(step_size=0.05, averaged=True),
    "D3GD exact": d3gd.D3GD(step_size=0.02, rule="exact"),
    "PerronD3GD": d3gd.PerronD3GD(step_size=0.02),
    "PushPull": d3gd.PushPull(step_size=0.01),
    "RFAST": d3gd.RFAST(step_size=0.05),
    "PULMDGD": d3gd.PULMDGD(step_size=0.3),
}


BOTH_WAYS = d3gd.Digraph.from_edges(AGENTS, [*GRAPH.edges, *GRAPH.edges[:, ::-1]])


def runs(folder, iterations, transport=None):
    """Every method under all conditions, from where its folder stands; and one that is silent on links by itself."""
    cases = [(name, which) for name in METHODS for which in CONDITIONS]
    for name, which in [*cases, ("ACGT", "silent")]:
        method, graph = METHODS.get(name, d3gd.ACGT(step_size=0.02)), GRAPH if name in METHODS else BOTH_WAYS
        yield (
            f"{name}, {which}",
            d3gd.run(
                method,
                graph,
                lambda agents: d3gd.problems.quadratic(agents=AGENTS, dim=7, block=agents),
                iterations=iterations,
                conditions=CONDITIONS.get(which),
                out=Path(folder) / f"{name} {which}",
                checkpoint_every=23,
                resume=True,
                transport=transport,
            ),
        )


def main(folder, iterations):
    with d3gd.transports.connect("mpi") as transport:
        for _ in runs(folder, int(iterations), transport):
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
