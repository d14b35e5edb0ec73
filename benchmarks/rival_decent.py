"""Rival: decent-bench's DGD with the same cost; undirected graphs only. Prints the seconds."""

import json
import sys
import time
from importlib.metadata import version

import networkx as nx
import numpy as np
from agent_cost import AgentCost
from decent_array import interoperability as iop
from decent_bench.agents import Agent
from decent_bench.algorithms.p2p import DGD
from decent_bench.costs import Cost
from decent_bench.networks import P2PNetwork


class Figure1(Cost):
    """Figure 1's loss of one agent."""

    def __init__(self, X, y, classes):
        self.cost, self.length = AgentCost(X, y, classes), classes * X.shape[1]

    @property
    def shape(self):
        return (self.length,)

    @property
    def m_smooth(self):
        return float("inf")

    @property
    def m_cvx(self):
        return float("nan")

    def function(self, x, **_):
        return self.cost.value(iop.to_numpy(x))

    def gradient(self, x, **_):
        return iop.from_numpy(self.cost.gradient(iop.to_numpy(x)))

    def hessian(self, x, **_):
        raise NotImplementedError

    def proximal(self, x, penalty, **_):
        raise NotImplementedError


def main(file):
    iop.set_backend("numpy")
    data = np.load(file)
    A, iterations = data["A"], int(data["iterations"])
    costs = [Figure1(X, y, int(data["classes"])) for X, y in zip(data["X"], data["y"], strict=True)]
    agents = [Agent(cost, state_snapshot_period=iterations) for cost in costs]
    graph = nx.Graph()
    graph.add_nodes_from(range(len(A)))
    graph.add_edges_from((i, j) for i in range(len(A)) for j in range(i) if A[i, j] > 0)
    network = P2PNetwork(graph, agents)
    network.weights = iop.from_numpy(A)
    method = DGD(step_size=0.1)
    began = time.perf_counter()
    method.run(network, iterations)
    taken = time.perf_counter() - began
    x = np.stack([iop.to_numpy(agent.x).reshape(-1) for agent in agents])
    print(json.dumps({"seconds": taken, "version": version("decent-bench"), "x": x.tolist()}))


main(sys.argv[1])
