"""The cost of records: the default metrics at every=10, against the ten steps between two records."""

import time

import numpy as np
from cases import Case, fair, figure1

import d3gd
from d3gd.metrics import default_metrics


def share(case, iterations, repeats):
    """Time of the default metrics, without exact stationarity and its loss, over that of the steps between."""
    names = [name for name in default_metrics(case.problem, case.graph.n) if name not in ("stationarity", "loss")]
    shares = []
    for _ in range(repeats):
        taken = {}
        for kept in (tuple(names), ("bytes",)):
            marks = []
            d3gd.run(
                *(d3gd.DiDGD(step_size=0.1, perron="known"), case.graph, case.problem),
                iterations=iterations,
                every=10,
                metrics=kept,
                callbacks=[lambda _, marks=marks: marks.append(time.process_time())],
            )
            taken[kept] = marks[-1] - marks[0]
        shares.append(taken[tuple(names)] / taken["bytes",] - 1)
    return float(np.median(shares)), names


def thousand():
    """Figure 1's problem for 1,000 agents, with test data."""
    problem = d3gd.problems.sigmoid_classification(agents=1000, alpha=0.1, seed=0)
    return Case(d3gd.graphs.regular(1000, 10, seed=0), problem)


def measure(quick):
    """The shares at n = 20 and n = 1,000."""
    small, names = share(figure1(), 200 if quick else 500, 3 if quick else 7)
    large, _ = share(thousand(), 40, 1 if quick else 5)
    return {20: small, 1000: large}, names


if __name__ == "__main__":
    fair()
    print(measure(True))
