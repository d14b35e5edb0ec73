"""A rank that fails during a run, as its arguments define."""

import sys
import time

import numpy as np

import d3gd

HOW, WHO, *APART = (sys.argv[1], int(sys.argv[2]), *sys.argv[4:]) if __name__ == "__main__" else ("", 0)


class Troubled(d3gd.problems.Problem):
    def __init__(self, agents, rank):
        self.agents, self.dim, self.rank = len(agents), 3, rank

    def gradients(self, x, k=None):
        if self.rank == WHO and k == 20:
            if HOW == "hang":
                time.sleep(600)
            if HOW == "raise":
                raise d3gd.D3GDError("the data of this rank are gone; bring them back")
            if HOW == "bug":
                raise ZeroDivisionError("a bug of the user")
        return x - 1.0

    def fingerprints(self):
        return np.zeros((self.agents, 32), dtype=np.uint8)


class Odd(d3gd.DiDGD):
    """Sends something else than the others at one iteration, from one rank."""

    def step(self, net, gradient, s, k):
        if k == 20 and net.halo.transport.rank == WHO:
            x = s.x[:, :2] if HOW == "shape" else s.x.astype(HOW)
            return s._replace(x=s.x + net.mix(net.a0, net.exchange(x=x, Y=s.Y).x).sum())
        return super().step(net, gradient, s, k)


def main():
    if APART:  # as on several machines
        from d3gd.transports.torch_dist import TorchDistributed

        TorchDistributed._neighbours = lambda self: set()
    with d3gd.transports.connect(timeout=float(sys.argv[3])) as transport:
        if HOW == "dimension":

            def problem(agents):
                return d3gd.problems.quadratic(agents=6, dim=3 + (transport.rank == WHO), block=agents)

        elif HOW == "settings":

            def problem(agents):
                other = 0.1 * (transport.rank == WHO)
                return d3gd.problems.sigmoid_classification(agents=6, regularization=other, block=agents)

        elif HOW == "data":
            problem = d3gd.problems.quadratic(agents=6, dim=3)
            problem = d3gd.problems.Quadratic(problem.Q, problem.b + (transport.rank == WHO))

        else:

            def problem(agents):
                return Troubled(agents, transport.rank)

        here = transport.rank == WHO
        method = Odd if HOW in ("shape", "float32", "complex128") else d3gd.DiDGD
        d3gd.run(
            method(step_size=0.2 if HOW == "experiment" and here else 0.1),
            d3gd.graphs.ring(5 if HOW == "agents" else 6),
            d3gd.problems.quadratic(agents=6, dim=3) if HOW == "agents" else problem,
            iterations=1000,
            every=1000,
            transport=transport,
            dtype="float32" if HOW == "precision" and here else "float64",
        )


if __name__ == "__main__":
    main()
