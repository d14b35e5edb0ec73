"""Descent along own gradients: nothing is tracked, and rows sum to one."""

import numpy as np

from tests.battery.textbook.perron import perron
from tests.paper import textbook as paper


def limit(A):
    """What Y = A Y tends to, and what stays under any row-stochastic weights: the Perron vector in every row."""
    return np.tile(perron(A), (len(A), 1))


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


def SGP(setting, A, C, gradients, X, T):
    """Assran, Loizou, Ballas and Rabbat, Algorithm 1."""
    w = np.ones((len(X), 1))
    path, U = [X], X
    for _ in range(T):
        U, w = C @ (U - setting.step_size * gradients(U / w)), C @ w
        path.append(U / w)
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
