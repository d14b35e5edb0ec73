"""Perron weights, and corrections that cancel under them."""

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from tests.paper import textbook as paper


def perron(A):
    """The left eigenvector of A for the eigenvalue 1, scaled to sum to one."""
    return paper.perron(A)


def FRSD(setting, A, C, gradients, X, T):
    """The recurrence of its docstring, with the correction as a sum over all models so far."""
    n, past, path = len(X), np.zeros_like(X), [X]
    for k in range(T):
        y = np.diag(np.linalg.matrix_power(A, k))[:, None]
        past = past + X
        X = A @ X - setting.step_size / (n * y) * gradients(X) - setting.gain * (past - A @ past)
        path.append(X)
    return path


def gains(A, momentum=0.0):
    """The first and the last gain of PerronD3GD, from their definitions: by bisection on roots and covariances."""
    values = np.linalg.eigvals(A).astype(complex)
    mu = np.delete(values, np.argmin(np.abs(values - 1)))

    def stable(beta):
        roots = [np.roots([1, -(1 + m - beta * (1 - m)), m]) for m in mu]
        return np.abs(roots).max() < 1

    def noise(beta):
        total = 0.0
        for m in mu:
            M = np.array([[m, -m], [beta * (1 - m), 1 - beta * (1 - m)]])
            eta = M[:, 0]
            if momentum:
                M, eta = _moving(m, beta, 0), np.array([m, beta * (1 - m), -m / 2])
            total += solve_discrete_lyapunov(M, np.outer(eta, eta.conj()))[0, 0].real
        return total

    def slowest(beta):
        """Without curvature, and where a step removes a gradient at once."""
        if momentum:
            return max(np.abs(np.linalg.eigvals(_moving(m, beta, c))).max() for m in mu for c in (0, 1))
        flat = np.abs([np.roots([1, -(1 + m - beta * (1 - m)), m]) for m in mu]).max()
        return max(flat, np.abs(1 - beta * (1 - mu)).max())

    def _moving(m, beta, c):
        """x, gamma v and gamma q of a mode with curvature c / gamma, column by column."""
        columns = []
        for x, u, w in np.eye(3):
            sent = x - c * x - u - momentum * w
            columns.append([m * sent, (u if beta else 0) + beta * (1 - m) * sent, (w + x - m * sent) / 2])
        return np.array(columns).T

    limit = _largest(stable, 8.0)
    rates = {beta: 1 - slowest(beta) for beta in min(1.0, 0.8 * limit) * np.arange(1, 41) / 40}
    best = max(rates.values())
    first = max(beta for beta, rate in rates.items() if rate >= best - 0.001 * abs(best))
    alone = noise(0.0) if momentum else np.sum(np.abs(mu) ** 2 / (1 - np.abs(mu) ** 2))
    allowed = (1 + 0.05 / (1 - momentum)) * alone
    quiet = first if noise(first) <= allowed else _largest(lambda beta: noise(beta) <= allowed, first)
    return float(f"{first:.3g}"), float(f"{max(quiet, min(first, 0.05, 0.5 * limit)):.3g}")


def _largest(holds, high):
    """The largest number below ``high`` for which something holds that holds for all smaller ones."""
    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def QGMomentum(setting, A, C, gradients, X, T):
    """Algorithm 1 of Lin and others, with gradients scaled by Perron weights."""
    pi, gamma, mu = perron(A)[:, None], setting.step_size, setting.momentum
    Q, path = np.zeros_like(X), [X]
    for _ in range(T):
        before, X = X, A @ (X - gamma * (gradients(X) / (len(X) * pi) + mu * Q))
        Q = mu * Q + (1 - mu) * (before - X) / gamma
        path.append(X)
    return path


def QGAdam(setting, A, C, gradients, X, T):
    """The recursion of its docstring; there is no paper of this form."""
    pi, gamma, mu, b = perron(A)[:, None], setting.step_size, setting.momentum, setting.second
    W = np.linalg.matrix_power(A, setting.rounds)
    first, last = gains(W, mu)
    V, Q, R, path = np.zeros_like(X), np.zeros_like(X), np.zeros_like(X), [X]
    for k in range(T):
        G = gradients(X) / (len(X) * pi)
        R = np.sqrt(b * R**2 + (1 - b) * G**2)
        D = G / (R / np.sqrt(1 - b ** (k + 1)) + setting.eps) + setting.weight_decay * X
        M = X - gamma * ((1 - mu) * D + V + mu * Q)
        beta = last + (first - last) / (1 + k / 100) ** 2
        before, X, V = X, W @ M, V + beta / gamma * (M - W @ M)
        if k % setting.scales_every == 0:
            R = A @ R
        Q = (Q + (before - X) / gamma) / 2
        path.append(X)
    return path


def PerronD3GD(setting, A, C, gradients, X, T):
    """The recursion of docs/explanation/perron.md, for the weights that agents chose; plans have their own tests."""
    pi, gamma, mu = perron(A)[:, None], setting.step_size, setting.momentum
    W = np.linalg.matrix_power(A, setting.rounds)
    first, last = gains(W, mu) if setting.correct else (0.0, 0.0)
    V, Q, path, nearby = np.zeros_like(X), np.zeros_like(X), [X], Nearby(A)
    for k in range(T):
        beta = last + (first - last) / (1 + k / 100) ** 2
        if setting.perron == "tracked":
            pi, beta = nearby.look(k)
            beta *= setting.correct
        M = X - gamma * (gradients(X) / (len(X) * pi) + V + mu * Q)
        before, X, V = X, W @ M, V + beta / gamma * (M - W @ M)
        Q = (Q + (before - X) / gamma) / 2
        path.append(X)
    return path


class Nearby:
    """What agents find out from their in-neighbours alone, agent by agent, as :mod:`d3gd.rules.nearby` describes it."""

    def __init__(self, A):
        self.A, self.n = A, len(A)
        self.hears = [np.flatnonzero(row) for row in A]
        self.y, self.entries = np.eye(self.n), [[] for _ in A]
        self.settled, self.heard = [None] * self.n, [0] * self.n

    def look(self, k):
        """Every agent's share and the gain at iteration k, which must follow iteration k - 1."""
        shares, gains = [], set()
        for i in range(self.n):
            self.entries[i].append(self.y[i, i])
            shares.append(max(self.y[i, i], 0 if self.settled[i] is not None else np.mean(self.entries[i]) / 2))
            r = self.n ** (-1 / self.heard[i]) if 2 * self.heard[i] < k else 1.0
            gains.add((1 - r) / (1 + r))
        assert len(gains) == 1
        for i, near in enumerate(self.hears):
            apart = max(np.linalg.norm(self.y[i] - self.y[j]) for j in near)
            if self.settled[i] is None and self.y[i].min() > 0 and apart <= self.n**-2.5:
                self.settled[i] = k
        own = [k + 1 if settled is None else settled for settled in self.settled]
        self.heard = [max([own[i], *(self.heard[j] for j in near)]) for i, near in enumerate(self.hears)]
        self.y = self.A @ self.y
        return np.array(shares)[:, None], gains.pop()
