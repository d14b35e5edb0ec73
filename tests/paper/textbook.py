"""Textbook versions of Di-DGD and D3GD: dense, with loops, straight from the paper.

Nothing here comes from the library, nor goes into it. `A` is a full matrix, `hears[i]` the list of agents that i
hears, itself included, and every quantity of the paper keeps its name.
"""

from itertools import combinations

import numpy as np


def perron(A):
    """The left eigenvector of A for the eigenvalue 1, scaled to sum to one."""
    values, vectors = np.linalg.eig(A.T)
    v = np.real(vectors[:, np.argmin(np.abs(values - 1))])
    return v / v.sum()


def nearest_on_simplex(v):
    """Project v on the simplex: spread the surplus evenly, drop what turns negative, and start again."""
    kept = list(range(len(v)))
    while True:
        surplus = (sum(v[j] for j in kept) - 1) / len(kept)
        positive = [j for j in kept if v[j] > surplus]
        if len(positive) == len(kept):
            break
        kept = positive
    p = np.zeros(len(v))
    for j in kept:
        p[j] = v[j] - surplus
    return p


def design(A, X, G, y, gamma, pi):
    """The design function J_k of eq. (design function of Jk)."""
    n = len(X)
    x_hat = sum(pi[j] * X[j] for j in range(n))
    g_hat = sum(pi[j] * G[j] / y[j] for j in range(n))
    total = 0.0
    for i in range(n):
        deviation = sum(A[i, j] * X[j] for j in range(n)) - x_hat
        push = G[i] / y[i] - g_hat
        total += deviation @ deviation - 2 * gamma / n * (deviation @ push)
    return total


def anchored(Abar, A0, delta):
    """A = (1 - delta) Abar + delta A0."""
    return (1 - delta) * Abar + delta * A0


def didgd_step(X, Y, G, A, gamma):
    """Eq. (strategy:1): the next models and Perron trackers."""
    n = len(X)
    X_next, Y_next = np.zeros_like(X), np.zeros_like(Y)
    for i in range(n):
        for j in range(n):
            X_next[i] += A[i, j] * X[j]
            Y_next[i] += A[i, j] * Y[j]
        X_next[i] -= gamma / (n * Y[i, i]) * G[i]
    return X_next, Y_next


def didgd(gradients, A, X, gamma, iterations, warmup=0):
    """All iterates of Di-DGD; `gamma` is a function of k."""
    Y = np.eye(len(X))
    path = [X]
    for k in range(iterations):
        X_next, Y = didgd_step(X, Y, gradients(X), A, gamma(k))
        X = X if k < warmup else X_next
        path.append(X)
    return path


def printed_slope(i, j, Abar, A0, X, G, Y, gamma, delta, pi, first=1.0):
    """Eq. (grd_J), entry j of row i; `first` multiplies its first term, which the paper leaves alone."""
    n = len(X)
    a = anchored(Abar, A0, delta)[i]
    along = sum((a[m] - pi[m]) * (X[j] @ X[m]) for m in range(n))
    e = np.eye(n)[i]
    against = sum((e[m] - pi[m]) / Y[m, m] * (X[j] @ G[m]) for m in range(n))
    return first * 2 * along - 2 * gamma * (1 - delta) / n * against


def algorithm_1_slope(i, j, Abar, A0, X, G, Y, gamma, delta, z, q, first=1.0):
    """The gradient of Algorithm 1, entry j of row i."""
    n = len(X)
    c = gamma * (1 - delta) / (n * Y[i, i])
    a = anchored(Abar, A0, delta)[i]
    mixed = sum(a[m] * X[m] for m in range(n))
    return first * 2 * X[j] @ (mixed - z[i]) + 2 * X[j] @ (c * q[i] - c * G[i])


def d3gd(
    gradients, A0, hears, X, gamma, eta, delta, iterations, *, rule, chain_rule=False, moves=lambda k, i: True, Y=None
):
    """All iterates of D3GD and the weights used for them; `moves(k, i)` says whether i is in I_k."""
    n = len(X)
    Abar, Y = A0.copy(), np.eye(n) if Y is None else Y
    G = gradients(X)
    z, q = X.copy(), G.copy()
    path, weights = [X], [anchored(Abar, A0, delta)]
    first = 1 - delta if chain_rule else 1.0
    for k in range(iterations):
        A = anchored(Abar, A0, delta)
        X_next, Y_next = didgd_step(X, Y, G, A, gamma(k))
        pi = perron(A)
        Abar_next = Abar.copy()
        for i in range(n):
            if not moves(k, i):
                continue
            moved = []
            for j in hears[i]:
                if rule == "global":
                    slope = printed_slope(i, j, Abar, A0, X, G, Y, gamma(k), delta, pi, first)
                else:
                    slope = algorithm_1_slope(i, j, Abar, A0, X, G, Y, gamma(k), delta, z, q, first)
                moved.append(Abar[i, j] - eta(k) * slope)
            Abar_next[i, hears[i]] = nearest_on_simplex(moved)
        G_next = gradients(X_next)
        z_next, q_next = X_next - X, G_next - G
        for i in range(n):
            for j in range(n):
                z_next[i] += A[i, j] * z[j]
                q_next[i] += A[i, j] * q[j]
        X, Y, G, z, q, Abar = X_next, Y_next, G_next, z_next, q_next, Abar_next
        path.append(X)
        weights.append(anchored(Abar, A0, delta))
    return path, weights


def best_row(V, t):
    """The least of ||sum_j p_j V_j - t||^2 over the simplex, by trying every support; V has one row per entry."""
    least = np.inf
    for size in range(1, len(V) + 1):
        for support in combinations(range(len(V)), size):
            W = V[list(support)]
            # Stationary on the support's affine hull: W W^T p + mu 1 = W t and 1^T p = 1.
            system = np.zeros((size + 1, size + 1))
            system[:size, :size] = W @ W.T
            system[:size, size] = system[size, :size] = 1
            p = np.linalg.lstsq(system, np.append(W @ t, 1.0), rcond=None)[0][:size]
            if p.min() >= -1e-9:
                p = np.maximum(p, 0) / np.maximum(p, 0).sum()
                least = min(least, float(np.sum((p @ W - t) ** 2)))
    return least
