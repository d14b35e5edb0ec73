"""What recording costs: the default metrics at every=10, against the ten steps between two records."""

import time

import d3gd
import numpy as np
from cases import fair, figure1, regular
from d3gd.metrics import default_metrics


def share(case, iterations, repeats):
    """Time of the default metrics but exact stationarity, over that of the steps between, of Di-DGD."""
    names = [name for name in default_metrics(case.problem, case.graph.n) if name != "stationarity"]
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


def measure(quick):
    """The shares at n = 20 and n = 1,000."""
    small, names = share(figure1(), 200 if quick else 500, 3 if quick else 7)
    large, _ = share(regular(1000, 10, 10, 100), 20, 1 if quick else 3)
    return {20: small, 1000: large}, names


if __name__ == "__main__":
    fair()
    print(measure(True))
