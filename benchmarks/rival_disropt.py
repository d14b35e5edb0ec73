"""Rival: disropt's SubgradientMethod, one MPI process per agent. Rank 0 prints the seconds."""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
from agent_cost import AgentCost
from disropt.agents import Agent
from disropt.algorithms import SubgradientMethod
from disropt.functions.abstract_function import AbstractFunction
from disropt.problems import Problem
from mpi4py import MPI


class Figure1(AbstractFunction):
    """Figure 1's loss of one agent, with an explicit gradient, to avoid the cost of automatic differentiation."""

    differentiable = True

    def __init__(self, X, y, classes):
        self.cost = AgentCost(X, y, classes)
        self.input_shape, self.output_shape = (classes * X.shape[1], 1), (1, 1)

    def eval(self, x):
        return np.array([[self.cost.value(x.reshape(-1))]])

    def subgradient(self, x, **_):
        return self.cost.gradient(x.reshape(-1)).reshape(-1, 1)


def main(file):
    data = np.load(file)
    rank, A, iterations = MPI.COMM_WORLD.Get_rank(), data["A"], int(data["iterations"])
    heard = [j for j in range(len(A)) if A[rank, j] > 0 and j != rank]
    hearing = [i for i in range(len(A)) if A[i, rank] > 0 and i != rank]
    agent = Agent(in_neighbors=heard, out_neighbors=hearing, in_weights=A[rank].tolist(), auto_local=False)
    agent.set_problem(Problem(Figure1(data["X"][rank], data["y"][rank], int(data["classes"]))))
    method = SubgradientMethod(agent, np.zeros((data["X"].shape[2] * int(data["classes"]), 1)))
    MPI.COMM_WORLD.Barrier()
    began = time.perf_counter()
    method.run(iterations=iterations, stepsize=0.1)
    MPI.COMM_WORLD.Barrier()
    taken = time.perf_counter() - began
    x = MPI.COMM_WORLD.gather(method.x.reshape(-1), root=0)
    if rank == 0:
        print(json.dumps({"seconds": taken, "version": version("disropt"), "x": np.stack(x).tolist()}))


main(sys.argv[1])
