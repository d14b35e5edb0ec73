r"""Fixed points and rates of methods, from dense matrices alone.

At rest, a method without memory of gradients solves :math:`(I - B) X + D\, G(X) = 0`, with n x n matrices B and D. On
quadratics, one iteration multiplies the distance from rest by a matrix that follows from the recurrence. Both are
written down here from the papers; a function has the name of its method.
"""

from types import SimpleNamespace

import numpy as np
from scipy.linalg import block_diag

from tests.battery.textbook.perron import Nearby, gains, perron


def shares(A):
    """The column-stochastic weights on A's links: a sender splits equally."""
    links = (A > 0).astype(float)
    return links / links.sum(axis=0)


def second(A):
    """|lambda_2|: what a round of mixing leaves of a deviation."""
    return np.sort(np.abs(np.linalg.eigvals(A)))[-2] if len(A) > 1 else 0.0


# Where methods rest with a constant step: (B, D) ----------------------------------------------------------------------


def _rest_DGD(setting, A, scale):
    eye = np.eye(len(A))
    return A, setting.step_size * (A if setting.combine == "after" else eye)


def _rest_DiDGD(setting, A, scale):
    return A, setting.step_size / len(A) * np.diag(1 / perron(A))


def _rest_D3GD(setting, A, scale):
    # The weights it has ended with, and the Perron weights that froze on the way there.
    return A, setting.step_size / len(A) * np.diag(1 / scale)


def _rest_SGP(setting, A, scale):
    C = shares(A)
    w = len(A) * perron(C.T)  # the mass gathers like this
    return C * w / w[:, None], setting.step_size * C / w[:, None]


def _rest_PerronD3GD(setting, A, scale):
    return A, A @ np.diag(setting.step_size / (len(A) * perron(A)))


def _rest_QGMomentum(setting, A, scale):
    return _rest_PerronD3GD(setting, A, scale)  # at rest there is no momentum


def _rest_PULMDGD(setting, A, scale):
    # One cycle, of as many rounds as there are agents.
    n = len(A)
    W = np.eye(n)
    for _ in range(n):
        W = A @ W
        np.fill_diagonal(W, 1 / n)
    return np.linalg.matrix_power(A, n), setting.step_size * W


REST = {
    "CHOCO": lambda setting, W, scale: (W, setting.step_size * W),  # DGD that combines after its step
    "DGD": _rest_DGD,
    "DiDGD": _rest_DiDGD,
    "D3GD": _rest_D3GD,
    "SGP": _rest_SGP,
    "PULMDGD": _rest_PULMDGD,
    "QGMomentum": _rest_QGMomentum,
    "PerronD3GD": _rest_PerronD3GD,  # without its correction
}


def _balance_QGAdam(setting, A, x, g):
    """The sum of gradients over scales, r = sqrt(b (A r)^2 + (1 - b) G^2) of gradients that rest, and weight decays."""
    b, G = setting.second, g / (len(A) * perron(A)[:, None])
    r = abs(G)
    for _ in range(2000):
        r = np.sqrt(b * (A @ r) ** 2 + (1 - b) * G**2)
    return (g / (r + setting.eps) + setting.weight_decay * x).sum(axis=0)


# What is zero at the common model where agents that agree come to rest, given it and all gradients there.
BALANCE = {"QGAdam": _balance_QGAdam}


def rest_of_quadratic(B, D, problem):
    """The models at rest, from one linear system."""
    n, d = problem.b.shape
    eye = np.eye(d)
    Q = block_diag(*problem.Q)
    system = np.kron(np.eye(n) - B, eye) + np.kron(D, eye) @ Q
    return np.linalg.solve(system, np.kron(D, eye) @ Q @ problem.b.ravel()).reshape(n, d)


# What an iteration does on quadratics ---------------------------------------------------------------------------------


def _one_step(B, D):
    """X+ = B X - D G."""

    def matrix(problem):
        eye = np.eye(problem.dim)
        return np.kron(B, eye) - np.kron(D, eye) @ block_diag(*problem.Q)

    return SimpleNamespace(matrix=matrix, conserved=False, transient=0.0)


def _tracking(B, E, F, H, beta=0.0, transient=0.0):
    """X+ = B X - E S + beta (X - X-), S+ = F S + H (G+ - G), for the state (X, S, X-)."""

    def matrix(problem):
        d = problem.dim
        b, e, f, h = (np.kron(M, np.eye(d)) for M in (B, E, F, H))
        one, none = np.eye(len(b)), np.zeros_like(b)
        moved = [b + beta * one, -e, -beta * one]
        change = h @ block_diag(*problem.Q)
        tracked = [change @ (moved[0] - one), f + change @ moved[1], change @ moved[2]]
        return np.block([moved, tracked, [one, none, none]])

    return SimpleNamespace(matrix=matrix, conserved=True, transient=transient)


def _two_step(P, R, S, T):
    """X+ = P X + R Q X - (S X- + T Q X-), for the state (X, X-)."""

    def matrix(problem):
        eye, Q = np.eye(problem.dim), block_diag(*problem.Q)
        p, r, s, t = (np.kron(M, eye) for M in (P, R, S, T))
        one, none = np.eye(len(Q)), np.zeros_like(Q)
        return np.block([[p + r @ Q, -s - t @ Q], [one, none]])

    return SimpleNamespace(matrix=matrix, conserved=True, transient=0.0)


def _rate_Centralized(setting, A):
    def matrix(problem):
        one = np.eye(problem.dim)
        beta, H = setting.momentum, problem.Q.mean(axis=0)
        return np.block([[(1 + beta) * one - setting.step_size * H, -beta * one], [one, 0 * one]])

    return SimpleNamespace(matrix=matrix, conserved=False, transient=0.0)


def _rate_DGD(setting, A):
    return _one_step(*_rest_DGD(setting, A, None))


def _rate_DiDGD(setting, A):
    step = _one_step(*_rest_DiDGD(setting, A, None))
    if setting.perron == "tracked":
        step.transient = second(A)  # of the Perron trackers
    return step


def _rate_SGP(setting, A):
    step = _one_step(*_rest_SGP(setting, A, None))
    step.transient = second(shares(A))  # of the mass
    return step


def _rate_EXTRA(setting, A):
    one, gamma = np.eye(len(A)), setting.step_size
    return _two_step(one + A, -gamma * one, (one + A) / 2, -gamma * one)


def _rate_ExactDiffusion(setting, A):
    half, gamma = (np.eye(len(A)) + A) / 2, setting.step_size
    return _two_step(2 * half, -gamma * half, half, -gamma * half)


def _rate_DIGing(setting, A):
    one, gamma = np.eye(len(A)), setting.step_size
    E = gamma * (one if setting.combine == "before" else A)
    return _tracking(A, E, A, A if setting.combine == "both" else one, setting.momentum)


def _rate_PushPull(setting, A):
    C, one = shares(A), np.eye(len(A))
    gamma = setting.step_size / (len(A) * perron(A) @ perron(C.T))
    return _tracking(A, gamma * (one if setting.combine == "before" else A), C, one)


def _rate_PushDIGing(setting, A):
    C = shares(A)
    w = len(A) * perron(C.T)
    B = C * w / w[:, None]  # on models X = U / w
    return _tracking(B, setting.step_size * C / w[:, None], C, np.eye(len(A)), transient=second(C))


def _rate_FROST(setting, A):
    one, gamma = np.eye(len(A)), setting.step_size / len(A)
    E = gamma * (one if setting.combine == "before" else A)
    transient = second(A) if setting.perron == "tracked" else 0.0
    return _tracking(A, E, A, np.diag(1 / perron(A)), transient=transient)


def _rate_RFAST(setting, A):
    return _tracking(A, setting.step_size * A, shares(A), np.eye(len(A)))


def _rate_FRSD(setting, A):
    n, beta, pi = len(A), setting.gain, perron(A)

    def matrix(problem):
        eye, Q = np.eye(problem.dim), block_diag(*problem.Q)
        a, one = np.kron(A, eye), np.eye(len(Q))
        push = np.kron(np.diag(setting.step_size / (n * pi)), eye) @ Q
        gained = beta * (one - a)  # for the state (X, gamma V)
        return np.block([[a - push - gained, -one], [gained, one]])

    return SimpleNamespace(matrix=matrix, conserved=True, transient=second(A))


def _rate_PULMDGD(setting, A):
    return _one_step(*_rest_PULMDGD(setting, A, None))  # of a cycle


def _rate_PerronD3GD(setting, A):
    n, pi, mu, transient = len(A), perron(A), setting.momentum, 0.0
    gain = gains(A, mu)[1]
    if setting.perron == "tracked":
        nearby, transient = Nearby(A), second(A)
        gain = [nearby.look(k)[1] for k in range(200)][-1]
    if not setting.correct:
        step = _one_step(*_rest_PerronD3GD(setting, A, None))
        step.transient = transient
        return step

    def matrix(problem):
        eye, Q = np.eye(problem.dim), block_diag(*problem.Q)
        a, one = np.kron(A, eye), np.eye(len(Q))
        push = np.kron(np.diag(setting.step_size / (n * pi)), eye) @ Q
        message = [one - push, -one, -mu * one]  # of the state (X, gamma V, gamma q)
        moved = [a @ part for part in message]
        corrected = [gain * (one - a) @ part for part in message]
        corrected[1] = corrected[1] + one
        observed = [(one - moved[0]) / 2, -moved[1] / 2, (one - moved[2]) / 2]
        return np.block([moved, corrected, observed])

    return SimpleNamespace(matrix=matrix, conserved=True, transient=transient)


def _rate_QGMomentum(setting, A):
    B, D = _rest_QGMomentum(setting, A, None)
    mu = setting.momentum

    def matrix(problem):
        eye = np.eye(problem.dim)
        a, one = np.kron(A, eye), np.eye(problem.b.size)
        moved = [np.kron(B, eye) - np.kron(D, eye) @ block_diag(*problem.Q), -mu * a]  # of the state (X, gamma q)
        observed = [(1 - mu) * (one - moved[0]), mu * one - (1 - mu) * moved[1]]
        return np.block([moved, observed])

    return SimpleNamespace(matrix=matrix, conserved=False, transient=0.0)


def _rate_KGT(setting, A):
    """Local steps x+ = x - gamma (Q x - b + c) have a closed form; linear in the state (X, c)."""
    gamma, steps = setting.step_size, setting.steps

    def matrix(problem):
        eye = np.eye(problem.dim)
        Q, W = block_diag(*problem.Q), np.kron(A, eye)
        one, none = np.eye(len(Q)), np.zeros_like(Q)
        local = np.linalg.matrix_power(np.block([[one - gamma * Q, -gamma * one], [none, one]]), steps)
        moved, steered = local[: len(Q), : len(Q)], local[: len(Q), len(Q) :]  # of X and of c
        mixing = (W - one) / (steps * gamma)
        return np.block([[W @ moved, W @ steered], [mixing @ (one - moved), one - mixing @ steered]])

    return SimpleNamespace(matrix=matrix, conserved=True, transient=0.0)


def _rate_MomentumTracking(setting, A):
    gamma, mu = setting.step_size, setting.momentum

    def matrix(problem):
        eye = np.eye(problem.dim)
        Q, W = block_diag(*problem.Q), np.kron(A, eye)
        one = np.eye(len(Q))
        # Of the state (X, W S, U): s = W S + (mu - 1) U + Q X.
        s = [Q, one, (mu - 1) * one]
        none = np.zeros_like(Q)
        moved = [W @ (one - gamma * s[0]), -gamma * W @ s[1], -gamma * W @ s[2]]
        return np.block([moved, [W @ part for part in s], [Q, none, mu * one]])

    return SimpleNamespace(matrix=matrix, conserved=True, transient=0.0)


RATES = {
    "KGT": _rate_KGT,
    "MomentumTracking": _rate_MomentumTracking,
    "Centralized": _rate_Centralized,
    "DGD": _rate_DGD,
    "DiDGD": _rate_DiDGD,
    "SGP": _rate_SGP,
    "EXTRA": _rate_EXTRA,
    "ExactDiffusion": _rate_ExactDiffusion,
    "DIGing": _rate_DIGing,
    "PushPull": _rate_PushPull,
    "PushDIGing": _rate_PushDIGing,
    "FROST": _rate_FROST,
    "FRSD": _rate_FRSD,
    "PULMDGD": _rate_PULMDGD,
    "QGMomentum": _rate_QGMomentum,
    "RFAST": _rate_RFAST,
    "PerronD3GD": _rate_PerronD3GD,
}


def factor(step, problem):
    """By how much an iteration shrinks the distance from rest in the long run."""
    moduli = np.linalg.eigvals(step.matrix(problem))
    if step.conserved:  # one eigenvalue 1 per entry of a model: what is conserved neither grows nor shrinks
        nearest = np.argsort(np.abs(moduli - 1))
        assert np.abs(moduli[nearest[: problem.dim]] - 1).max() < 1e-6
        moduli = moduli[nearest[problem.dim :]]
    return max(np.abs(moduli).max(), step.transient)
