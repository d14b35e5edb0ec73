"""A rank that goes wrong in the middle of a run, in the way that the arguments say."""

import sys
import time

import numpy as np

import d3gd

HOW, WHO = (sys.argv[1], int(sys.argv[2])) if __name__ == "__main__" else ("", 0)


class Troubled(d3gd.problems.Problem):
    def __init__(self, agents, rank):
        self.agents, self.dim, self.rank = len(agents), 3, rank

    def gradients(self, x, k=None):
        if self.rank == WHO and k == 20:
            if HOW == "hang":
                time.sleep(600)
            if HOW == "raise":
                raise d3gd.D3GDError("the data of this rank are gone; bring them back")
            if HOW == "type":
                return (x - 1).astype(np.complex128)
            if HOW == "bug":
                raise ZeroDivisionError("a bug of the user")
        return x - 1.0

    def fingerprints(self):
        return np.zeros((self.agents, 32), dtype=np.uint8)


def main():
    with d3gd.transports.connect(timeout=2) as transport:
        if HOW == "dimension":

            def problem(agents):
                return d3gd.problems.quadratic(agents=6, dim=3 + (transport.rank == WHO), block=agents)

        else:

            def problem(agents):
                return Troubled(agents, transport.rank)

        algorithm = d3gd.DiDGD(step_size=0.2 if HOW == "experiment" and transport.rank == WHO else 0.1)
        d3gd.run(algorithm, d3gd.graphs.ring(6), problem, iterations=1000, every=1000, transport=transport)


if __name__ == "__main__":
    main()
