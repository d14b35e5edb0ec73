"""A small network for runs on which messages fail."""

import d3gd

N = 6
GRAPH = d3gd.graphs.erdos_renyi(N, 0.6, seed=1)
HALVES = [d3gd.Digraph.from_edges(N, GRAPH.edges[::2]), d3gd.Digraph.from_edges(N, GRAPH.edges[1::2])]
PROBLEM = d3gd.problems.quadratic(agents=N, dim=3)
AVERAGED = d3gd.DiDGD(step_size=0.05, averaged=True)


def runs(conditions, method=AVERAGED, **options):
    """The result of a run under conditions."""
    options = {"iterations": 40, "every": 10, "seed": 3} | options
    return d3gd.run(method, GRAPH, PROBLEM, conditions=conditions, **options)
