"""Gradients, momenta or displacements are tracked: every agent steps along a mean of all."""

import numpy as np

from tests.battery.textbook.perron import perron
from tests.unit.test_random import reference


def _tracking(gradients, X, T, beta, move, track, seen=lambda U, k: U):
    """The order of gradient tracking: models first, then trackers with the gradients at the new models."""
    U = was = X
    S = G = gradients(X)
    path = [X]
    for k in range(T):
        U, was = move(U, S) + beta * (U - was), U
        new = gradients(seen(U, k + 1))
        S, G = track(S, new, G, k + 1), new
        path.append(seen(U, k + 1))
    return path


def DIGing(setting, A, C, gradients, X, T):
    """Nedić, Olshevsky and Shi, Algorithm 1; Xu et al., Aug-DGM; SONATA mixes models after, trackers before."""
    alpha = setting.step_size
    moves = {"before": lambda X, S: A @ X - alpha * S}
    tracks = {"both": lambda S, new, G, k: A @ (S + new - G)}
    return _tracking(
        gradients,
        X,
        T,
        setting.momentum,
        moves.get(setting.combine, lambda X, S: A @ (X - alpha * S)),
        tracks.get(setting.combine, lambda S, new, G, k: A @ S + new - G),
    )


def ACGT(setting, A, C, gradients, X, T):
    """The recurrence of its docstring; who gives up whom is a race of exponential clocks, one clock per link."""
    n, alpha = len(X), setting.step_size
    near = [[j for j in range(n) if j != i and A[i, j] > 0] for i in range(n)]

    def gives_up(i, M, k):
        away = {j: np.linalg.norm(M[i] - M[j]) for j in near[i]}
        mean = sum(away.values()) / len(near[i])
        clock = {j: -np.log(1 - reference(0, min(i, j) * n + max(i, j), k, 0, 3)) for j in near[i]}
        rings = sorted(near[i], key=lambda j: clock[j] * np.exp(setting.sharpness * away[j] / mean))
        return rings[: int(setting.prune * len(rings))]

    def metropolis(M, k):
        gone = [gives_up(i, M, k) for i in range(n)]
        left = [[j for j in near[i] if j not in gone[i] and i not in gone[j]] for i in range(n)]
        W = np.zeros((n, n))
        for i in range(n):
            for j in left[i]:
                W[i, j] = 1 / (1 + max(len(left[i]), len(left[j])))
            W[i, i] = 1 - W[i].sum()
        return W

    S = G = gradients(X)
    path, pruned = [X], A
    for k in range(T):
        M = X - alpha * S
        first = k % setting.cycle == 0
        W = A if first else pruned
        pruned = metropolis(M, k) if first else pruned
        X = W @ M
        new = gradients(X)
        S, G = W @ S + new - G, new
        path.append(X)
    return path


def PushPull(setting, A, C, gradients, X, T):
    """Pu, Shi, Xu and Nedić, eq. (3); AB of Xin and Khan mixes before the step."""
    n = len(X)
    alpha = setting.step_size / (n * perron(A) @ perron(C.T))
    before = setting.combine == "before"
    return _tracking(
        gradients,
        X,
        T,
        0.0,
        (lambda X, S: A @ X - alpha * S) if before else (lambda X, S: A @ (X - alpha * S)),
        lambda S, new, G, k: C @ S + new - G,
    )


def PushDIGing(setting, A, C, gradients, X, T):
    """Nedić, Olshevsky and Shi, Algorithm 2."""
    ones = np.ones((len(X), 1))
    return _tracking(
        gradients,
        X,
        T,
        0.0,
        lambda U, S: C @ (U - setting.step_size * S),
        lambda S, new, G, k: C @ S + new - G,
        seen=lambda U, k: U / (np.linalg.matrix_power(C, k) @ ones),
    )


def FROST(setting, A, C, gradients, X, T):
    """Xin, Xi and Khan, Algorithm 1, where [y_i]_i is the diagonal of the powers of A, or its limit."""
    n = len(X)
    alpha = setting.step_size / n

    def scaled(G, k):
        y = np.diag(np.linalg.matrix_power(A, k)) if setting.perron == "tracked" else perron(A)
        return G / y[:, None]

    before = setting.combine == "before"
    U, G = X, gradients(X)
    S = scaled(G, 0)
    path = [X]
    for k in range(T):
        U = A @ U - alpha * S if before else A @ (U - alpha * S)
        new = gradients(U)
        S, G = A @ S + scaled(new, k + 1) - scaled(G, k), new
        path.append(U)
    return path


def RFAST(setting, A, C, gradients, X, T):
    """Zhu et al., link by link, where everything arrives: rho[i, j] is for i, from j; with steps along all of Z."""
    n, d = X.shape
    rho, read = np.zeros((2, n, n, d))
    Z = G = gradients(X)
    path = [X]
    for _ in range(T):
        X = A @ (X - setting.step_size * Z)
        for i in range(n):
            for j in range(n):
                rho[i, j] = rho[i, j] + C[i, j] * Z[j]
        kept = np.array([rho[i, i] - read[i, i] for i in range(n)])
        heard = np.array([sum(rho[i, j] - read[i, j] for j in range(n) if j != i) for i in range(n)])
        read = rho.copy()
        new = gradients(X)
        Z, G = kept + heard + new - G, new
        path.append(X)
    return path


def KGT(setting, W, C, gradients, X, T):
    """Local steps with corrections, as the docstring prints them."""
    c, path = np.zeros_like(X), [X]
    for _ in range(T):
        local = X
        for _ in range(setting.steps):
            local = local - setting.step_size * (gradients(local) + c)
        Z = (X - local) / (setting.steps * setting.step_size)
        X, c = W @ local, c - Z + W @ Z
        path.append(X)
    return path


def MomentumTracking(setting, W, C, gradients, X, T):
    """Trackers of momenta."""
    U, path = np.zeros_like(X), [X]
    S = np.zeros_like(X)
    for _ in range(T):
        new = setting.momentum * U + gradients(X)
        S = W @ S + new - U
        X, U = W @ (X - setting.step_size * S), new
        path.append(X)
    return path
