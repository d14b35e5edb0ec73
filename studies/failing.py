"""PerronD3GD on networks that fail, against averaged Di-DGD: ``python -m studies.failing``.

Ratios of what quadratics end with after 4,000 iterations at equal steps, as geometric means over graphs, seeds and the
records of the last fifth. The targets: at most 1/30 of the stationarity and 1/1,000 of the disagreement under each
hardship.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence

import numpy as np

from d3gd import Conditions, DiDGD, Digraph, PerronD3GD, graphs, problems, run
from d3gd.arrays import Floats

METRICS = ("stationarity", "disagreement")
TARGETS = (1 / 30, 1 / 1000)
STEP = 0.1

_HUB = [pair for i in range(1, 6) for pair in ((0, i), (i, 0))] + [(1, 2), (2, 1), (2, 3), (3, 2)]
_CHORDS = [*((i, (i + 1) % 6) for i in range(6)), (0, 3), (0, 2), (4, 1)]
NETWORKS: Mapping[str, Digraph] = {
    "hub (6)": Digraph.from_edges(6, _HUB),
    "ring with chords (6)": Digraph.from_edges(6, _CHORDS),
    "Erdos-Renyi 0.4 (6)": graphs.erdos_renyi(6, 0.4, seed=0),
    "exponential (16)": graphs.exponential(16),
    "Erdos-Renyi 0.3 (20)": graphs.erdos_renyi(20, 0.3, seed=0),
}
HARDSHIPS: Mapping[str, Conditions] = {
    "changing links": Conditions(links=0.4),
    "loss": Conditions(loss=0.6),
    "pauses": Conditions(pause=0.2, back=0.2),
    "delay": Conditions(delay=5),
}


def ends(graph: Digraph, conditions: Conditions, *, iterations: int, seed: int) -> Floats:
    """Return the logarithms of PerronD3GD's two metrics at the end, less those of averaged Di-DGD."""
    problem = problems.quadratic(agents=graph.n, dim=5, seed=seed)
    found = []
    for method in (PerronD3GD(step_size=STEP), DiDGD(step_size=STEP, averaged=True)):
        result = run(
            method,
            graph,
            problem,
            iterations=iterations,
            every=max(1, iterations // 100),
            metrics=METRICS,
            seed=seed,
            conditions=conditions,
            progress=False,
        )
        late = result.iterations >= 0.8 * iterations
        found.append([float(np.mean(np.log(result.metrics[name][late]))) for name in METRICS])
    gain: Floats = np.subtract(*np.array(found))
    return gain


def main(args: Sequence[str] | None = None) -> int:
    """Print the ratios and whether the targets are met."""
    parser = argparse.ArgumentParser(prog="python -m studies.failing", description=__doc__)
    parser.add_argument("--iterations", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=3, help="number of random draws; they are 0, 1, ...")
    options = parser.parse_args(args)
    met = True
    for hardship, conditions in HARDSHIPS.items():
        rows = {
            name: np.mean(
                [ends(graph, conditions, iterations=options.iterations, seed=seed) for seed in range(options.seeds)],
                axis=0,
            )
            for name, graph in NETWORKS.items()
        }
        for name, logarithms in rows.items():
            print(f"{hardship:15} {name:22} {np.exp(logarithms[0]):9.2g} {np.exp(logarithms[1]):9.2g}", flush=True)
        mean = np.exp(np.mean(list(rows.values()), axis=0))
        good = bool((mean <= TARGETS).all())
        met = met and good
        print(f"{hardship:15} {'mean':22} {mean[0]:9.2g} {mean[1]:9.2g}  {'met' if good else 'NOT MET'}", flush=True)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
