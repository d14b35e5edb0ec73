"""A rank of a ring that is killed in the middle of a run."""

import os
import signal
import sys

import numpy as np

import d3gd

WHO = int(sys.argv[1]) if __name__ == "__main__" else 0


class Troubled(d3gd.problems.Problem):
    def __init__(self, agents, rank):
        self.agents, self.dim, self.rank = len(agents), 3, rank

    def gradients(self, x, k=None):
        if self.rank == WHO and k == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return np.ones_like(x)

    def losses(self, x):
        return np.zeros(self.agents)

    def accuracies(self, x):
        return None


if __name__ == "__main__":
    with d3gd.transports.connect("torch", timeout=2) as ranks:
        d3gd.run(
            d3gd.DiDGD(step_size=0.1),
            d3gd.graphs.ring(3),
            lambda agents: Troubled(agents, ranks.rank),
            iterations=10,
            metrics=["bytes"],
            transport=ranks,
        )
