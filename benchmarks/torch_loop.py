"""Rival: one PyTorch module per agent, stepped in a loop. Called with a file of the problem; prints the seconds."""

import json
import sys
import time

import numpy as np
import torch


class Scores(torch.nn.Module):
    """The scores of an agent's classes."""

    def __init__(self, classes, features):
        super().__init__()
        self.linear = torch.nn.Linear(features, classes, bias=False, dtype=torch.float64)
        torch.nn.init.zeros_(self.linear.weight)

    def forward(self, X, onehot):
        scores = self.linear(X)
        weight = self.linear.weight
        return torch.sigmoid(onehot * scores).sum() / len(X) + 0.5e-4 * (weight * weight).sum()


def main(file):
    data = np.load(file)
    torch.set_num_threads(1)
    A, n, iterations = torch.tensor(data["A"]), len(data["A"]), int(data["iterations"])
    classes, features = int(data["classes"]), data["X"].shape[2]
    X = torch.tensor(data["X"])
    onehot = torch.nn.functional.one_hot(torch.tensor(data["y"]), classes).double()
    agents = [Scores(classes, features) for _ in range(n)]
    Y = torch.eye(n, dtype=torch.float64)
    began = time.perf_counter()
    for _ in range(iterations):
        for i, agent in enumerate(agents):
            agent.zero_grad()
            agent(X[i], onehot[i]).backward()
        with torch.no_grad():
            sent = [agent.linear.weight.clone() for agent in agents]
            for i, agent in enumerate(agents):
                mixed = sum(A[i, j] * sent[j] for j in range(n) if A[i, j] > 0)
                agent.linear.weight.copy_(mixed - 0.1 / (n * Y[i, i]) * agent.linear.weight.grad)
            Y = A @ Y
    taken = time.perf_counter() - began
    x = torch.stack([agent.linear.weight.detach().reshape(-1) for agent in agents]).numpy()
    print(json.dumps({"seconds": taken, "version": torch.__version__, "x": x.tolist()}))


main(sys.argv[1])
