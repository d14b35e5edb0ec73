"""Every method as its paper prints it: dense matrices, all agents at once, nothing from the library.

A is row-stochastic (W if symmetric), C column-stochastic; X, G and S have one row per agent. Each function returns the
models of all iterations. To be picked up by the battery, a function has the name of its method.
"""

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from tests.paper import textbook as paper
from tests.unit.test_random import reference


def perron(A):
    """The left eigenvector of A for the eigenvalue 1, scaled to sum to one."""
    return paper.perron(A)


def Centralized(setting, A, C, gradients, X, T):
    """Heavy ball on the mean of all objectives; the first iteration has no momentum."""
    x = was = X.mean(axis=0)
    path = [np.tile(x, (len(X), 1))]
    for _ in range(T):
        mean = gradients(path[-1]).mean(axis=0)
        x, was = x - setting.step_size * mean + setting.momentum * (x - was), x
        path.append(np.tile(x, (len(X), 1)))
    return path


def DiDGD(setting, A, C, gradients, X, T):
    """Eq. (strategy:1) of Du and Wai."""
    if setting.perron == "tracked" and not setting.averaged:
        return paper.didgd(gradients, A, X, lambda k: setting.step_size, T)
    Y, path = np.eye(len(X)) if setting.averaged else limit(A), [X]
    for k in range(T):
        X = paper.didgd_step(X, Y, gradients(X), A, setting.step_size)[0]
        if setting.averaged:
            Y = k / (k + 2) * A @ Y + 2 / (k + 2) * np.eye(len(X))
        path.append(X)
    return path


def limit(A):
    """What Y = A Y tends to, and what stays under any row-stochastic weights: the Perron vector in every row."""
    return np.tile(perron(A), (len(A), 1))


def D3GD(setting, A, C, gradients, X, T):
    """Eq. (pgd) and Algorithm 1 of Du and Wai; their eq. (naivedecay) has its own tests."""
    hears = [list(np.flatnonzero(row)) for row in A]
    path, _ = paper.d3gd(
        gradients,
        A,
        hears,
        X,
        lambda k: setting.step_size,
        lambda k: setting.refine_step,
        setting.anchor,
        T,
        rule=setting.rule,
        chain_rule=setting.chain_rule,
        Y=np.eye(len(X)) if setting.perron == "tracked" else limit(A),
    )
    return path


def DGD(setting, A, C, gradients, X, T):
    """Yuan, Ling and Yin, eq. (3); diffusion, Chen and Sayed, eq. (ATC)."""
    path = [X]
    for _ in range(T):
        G = gradients(X)
        X = A @ X - setting.step_size * G if setting.combine == "before" else A @ (X - setting.step_size * G)
        path.append(X)
    return path


def EXTRA(setting, A, C, gradients, X, T):
    """Shi, Ling, Wu and Yin, Algorithm 1, with W~ = (I + W) / 2."""
    eye, alpha = np.eye(len(X)), setting.step_size
    half = (eye + A) / 2
    path = [X, A @ X - alpha * gradients(X)]
    for _ in range(T - 1):
        before, now = path[-2:]
        path.append((eye + A) @ now - half @ before - alpha * (gradients(now) - gradients(before)))
    return path


def ExactDiffusion(setting, A, C, gradients, X, T):
    """Yuan, Ying, Zhao and Sayed, Algorithm 1, without psi: the second-order recursion that D2 prints."""
    alpha, half = setting.step_size, (np.eye(len(X)) + A) / 2
    path = [X, half @ (X - alpha * gradients(X))]
    for _ in range(T - 1):
        before, now = path[-2:]
        path.append(half @ (2 * now - before - alpha * (gradients(now) - gradients(before))))
    return path


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


def FRSD(setting, A, C, gradients, X, T):
    """The recurrence of its docstring, with the correction as a sum over all models so far."""
    n, past, path = len(X), np.zeros_like(X), [X]
    for k in range(T):
        y = np.diag(np.linalg.matrix_power(A, k))[:, None]
        past = past + X
        X = A @ X - setting.step_size / (n * y) * gradients(X) - setting.gain * (past - A @ past)
        path.append(X)
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


def PULMDGD(setting, A, C, gradients, X, T):
    """Liang, Song and Yuan, Algorithm 3: each agent's model and memory, round by round."""
    n, path, cycle = len(X), [X], 0
    while len(path) <= T:
        G = gradients(X)
        z, w = X - setting.step_size * G, np.eye(n)
        rounds = int(np.ceil(n * (1 + np.log(1 + cycle)))) if setting.growing else n
        for _ in range(rounds):
            z, w = A @ z, A @ w
            for i in range(n):
                d = w[i, i] - 1 / n
                w[i, i] -= d
                z[i] = z[i] + setting.step_size * d * G[i]
        path += [X] * (rounds - 1) + [z]
        X, cycle = z, cycle + 1
    return path[: T + 1]


def SGP(setting, A, C, gradients, X, T):
    """Assran, Loizou, Ballas and Rabbat, Algorithm 1."""
    w = np.ones((len(X), 1))
    path, U = [X], X
    for _ in range(T):
        U, w = C @ (U - setting.step_size * gradients(U / w)), C @ w
        path.append(U / w)
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
            total += solve_discrete_lyapunov(M, np.outer(M[:, 0], M[:, 0].conj()))[0, 0].real
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
            columns.append([m * sent, u + beta * (1 - m) * sent, (w + x - m * sent) / 2])
        return np.array(columns).T

    limit = _largest(stable, 8.0)
    rates = {beta: 1 - slowest(beta) for beta in min(1.0, 0.8 * limit) * np.arange(1, 41) / 40}
    first = max(beta for beta, rate in rates.items() if rate >= 0.999 * max(rates.values()))
    allowed = 1.05 * np.sum(np.abs(mu) ** 2 / (1 - np.abs(mu) ** 2))
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
    first, last = gains(A, mu)
    V, Q, S, path = np.zeros_like(X), np.zeros_like(X), np.zeros_like(X), [X]
    for k in range(T):
        G = gradients(X) / (len(X) * pi)
        S = b * S + (1 - b) * G**2
        M = X - gamma * ((1 - mu) * G / (np.sqrt(S / (1 - b ** (k + 1))) + setting.eps) + V + mu * Q)
        beta = last + (first - last) / (1 + k / 100) ** 2
        before, X, S, V = X, A @ M, A @ S, V + beta / gamma * (M - A @ M)
        Q = (Q + (before - X) / gamma) / 2
        path.append(X)
    return path


def PerronD3GD(setting, A, C, gradients, X, T):
    """The recursion of docs/explanation/perron.md, for the weights that agents chose; plans have their own tests."""
    pi, gamma, mu = perron(A)[:, None], setting.step_size, setting.momentum
    first, last = gains(A, mu) if setting.correct else (0.0, 0.0)
    V, Q, path, nearby = np.zeros_like(X), np.zeros_like(X), [X], Nearby(A)
    for k in range(T):
        beta = last + (first - last) / (1 + k / 100) ** 2
        if setting.perron == "tracked":
            pi, beta = nearby.look(k)
            beta *= setting.correct
        M = X - gamma * (gradients(X) / (len(X) * pi) + V + mu * Q)
        before, X, V = X, A @ M, V + beta / gamma * (M - A @ M)
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


def CHOCO(setting, W, C, gradients, X, T):
    """Consensus on compressed copies; here one scale per row is all that int8 has."""
    copies, path = np.zeros_like(X), [X]
    for _ in range(T):
        M = X - setting.step_size * gradients(X)
        away = M - copies
        scale = (np.abs(away).max(axis=1, keepdims=True) / 127).astype(np.float32).astype(float)
        copies = copies + scale * np.clip(np.rint(away / scale), -127, 127)
        X = M + W @ copies - copies
        path.append(X)
    return path
