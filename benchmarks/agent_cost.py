"""One agent's part of Figure 1's loss in plain NumPy, all classes, for rivals that need a cost per agent."""

import numpy as np


class AgentCost:
    """The loss as printed, with its gradient."""

    def __init__(self, X, y, classes, regularization=1e-4):
        self.X, self.onehot, self.regularization = X, np.eye(classes)[y], regularization

    def gradient(self, x):
        theta = x.reshape(-1, self.X.shape[1])
        s = 1 / (1 + np.exp(-self.onehot * (self.X @ theta.T)))
        slopes = self.onehot * s * (1 - s) / len(self.X)
        return (slopes.T @ self.X).reshape(-1) + self.regularization * x

    def value(self, x):
        theta = x.reshape(-1, self.X.shape[1])
        s = 1 / (1 + np.exp(-self.onehot * (self.X @ theta.T)))
        return float(s.sum() / len(self.X) + 0.5 * self.regularization * (x @ x))
