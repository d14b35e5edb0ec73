"""The Perron vector and the spectral gap of row-stochastic weights, also for large n and tiny gaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import eye_array

from d3gd.arrays import CSR, Floats
from d3gd.errors import WeightsError
from d3gd.stochastic import connecting

_DENSE_SOLVE = 2000
_DENSE_EIGENVALUES = 600
_UNLIKELY = 1e-9  # about the probability that a random vector misses an eigenvalue
_ENTRIES_TO_VISIT = 5e9  # limit on the entries visited by products with A: about half a minute


def perron(matrix: CSR | Floats) -> Floats:
    r"""Return the left Perron vector, the influence of each agent on the consensus.

    .. math::
        \pi^T A = \pi^T, \qquad \sum_i \pi_i = 1, \qquad \pi_i > 0

    Up to 2,000 agents it is computed by a direct solve. Above, products with A are tried first; if they converge slowly
    (a long ring), a sparse factorization follows, so no n x n array is formed.

    Args:
        matrix: Row-stochastic weights that connect all agents, dense or sparse.

    Returns:
        The vector, shape (n,).

    Example:
        >>> perron([[0.5, 0.5], [0.25, 0.75]]).round(4)
        array([0.3333, 0.6667])
    """
    A = connecting(matrix)
    pi = _perron_dense(A.toarray()) if A.shape[0] <= _DENSE_SOLVE else _perron_sparse(A)
    if not (np.all(pi > 0) and np.abs(pi @ A - pi).sum() <= 1e-9):
        raise WeightsError(
            f"the Perron vector of these {A.shape[0]} x {A.shape[0]} weights could not be computed: some agents "
            f"count for almost nothing or mixing is too slow; give the links that are hardly used more weight"
        )
    return pi


def _perron_dense(A: Floats) -> Floats:
    n = A.shape[0]
    pi: Floats = np.linalg.solve(np.eye(n) - A.T + 1 / n, np.full(n, 1 / n))
    # The solution's error is relative to its largest entry; tiny entries need elimination.
    return pi / pi.sum() if n * pi.min() > 1e-6 else _perron_by_elimination(A)


def _perron_by_elimination(A: Floats) -> Floats:
    """Eliminate agents one by one and redistribute their weight, without any subtraction.

    Every entry, however small, then has a small relative error. Grassmann, Taksar and Heyman, Regenerative analysis
    and steady state distributions for Markov chains, Operations Research 33 (1985).
    """
    n = A.shape[0]
    A = A.copy()
    for k in range(n - 1, 0, -1):
        A[:k, k] /= A[k, :k].sum()
        A[:k, :k] += np.outer(A[:k, k], A[k, :k])
    pi: Floats = np.ones(n)
    for k in range(1, n):
        pi[k] = pi[:k] @ A[:k, k]
    pi /= pi.sum()
    return pi


def _perron_sparse(A: CSR) -> Floats:
    start = np.full(A.shape[0], 1 / A.shape[0])
    pi, converged = _perron_by_products(A, start, steps=300)
    if converged:
        return pi
    if _is_narrow(A):
        return _perron_by_factorization(A)
    largest = _largest(lambda v: A.T @ v, pi, count=1, restarts=60)
    if largest is not None:
        pi = np.abs(largest[1][:, 0].real)
    return _perron_by_products(A, pi / pi.sum(), steps=int(_ENTRIES_TO_VISIT / A.nnz))[0]


def _perron_by_products(A: CSR, pi: Floats, steps: int) -> tuple[Floats, bool]:
    """Mix until every entry is within about 1e-10 of its limit; return the vector and whether that was reached."""
    At = A.T.tocsr()
    stride, before = 20, np.inf
    for k in range(steps):
        previous, pi = pi, At @ pi
        if k % stride == 0:
            pi /= pi.sum()
            change = float(np.abs(pi / previous - 1).max())
            if k == 0 and change <= 1e-15:
                return pi, True
            # The remainder is a geometric series, whose ratio follows from the last changes.
            ratio = (change / before) ** (1 / stride)
            if ratio < 1 and change / (1 - ratio) <= 1e-10:
                return pi, True
            before = change
    return pi, False


def _perron_by_factorization(A: CSR) -> Floats:
    """Fix the last agent's entry at one and solve for the others."""
    from scipy.sparse.linalg import splu

    others = A[:-1, :-1]
    system = (eye_array(A.shape[0] - 1) - others).T.tocsc()
    pi: Floats = np.append(splu(system).solve(A[[-1], :-1].toarray()[0]), 1.0)
    pi /= pi.sum()
    return pi


def spectral_gap(matrix: CSR | Floats) -> float:
    r"""Return the spectral gap, :math:`1 - |\lambda_2(A)|`: the share of disagreement that a round of mixing removes.

    Up to 600 agents all eigenvalues are computed. Above, Arnoldi's method is tried first. If it fails because the gap
    is tiny (a long ring), the eigenvalues nearest to 1 are found by factorization, enough of them to prove that none is
    missing. If it fails because many eigenvalues are almost as large as the second (large random graphs), the gap is
    estimated from the rate at which disagreement decays, to two or three digits. If nothing else converges (large
    uneven lattices), the 32 eigenvalues nearest to 1 decide, without the proof.

    Args:
        matrix: Row-stochastic weights that connect all agents, dense or sparse.

    Returns:
        The gap, between 0 and 1.

    Example:
        >>> spectral_gap([[0.5, 0.5], [0.25, 0.75]])
        0.75
    """
    A = connecting(matrix)
    n = A.shape[0]
    if n == 1:
        return 1.0
    if n <= _DENSE_EIGENVALUES:
        moduli = np.sort(np.abs(np.linalg.eigvals(A.toarray())))
        return float(np.clip(1 - moduli[-2], 0, 1))
    pi = perron(A)
    attempts: tuple[Callable[[], float | None], ...] = (
        lambda: _gap_by_arnoldi(A, pi, restarts=10),
        lambda: _gap_by_factorization(A, pi, proven=True),
        lambda: _gap_by_decay(A, pi),
        lambda: _gap_by_arnoldi(A, pi, restarts=100),
        lambda: _gap_by_factorization(A, pi, proven=False),
    )
    for attempt in attempts:
        gap = attempt()
        if gap is not None:
            return float(np.clip(gap, 0, 1))
    raise WeightsError(
        f"the spectral gap of these {n} x {n} weights could not be computed: mixing is too slow; give the links that "
        f"are hardly used more weight, or choose a graph with shorter paths"
    )


def modes(A: CSR) -> npt.NDArray[np.complex128]:
    """Return the eigenvalues of row-stochastic weights except the first, which is 1; O(n^3)."""
    values = np.linalg.eigvals(A.toarray()).astype(np.complex128)
    others: npt.NDArray[np.complex128] = np.delete(values, np.argmin(np.abs(values - 1)))
    return others


def second_within(A: CSR, most: float) -> bool:
    r"""Whether a few rounds of mixing prove that :math:`|\lambda_2(A)|` is at most ``most``; False proves nothing.

    A random vector v is mixed and its constant part removed: let M be one such round, whose eigenvalues are those of A
    except for the first, and w the left eigenvector of unit length for :math:`\lambda_2`. Then
    :math:`|\lambda_2|^k |w^* v| \le \|M^k v\|`; and for normal v, :math:`|w^* v| < t` has a probability of at most
    :math:`2 t / \sqrt{\pi}`. So k rounds bound the eigenvalue from above, except with probability 1e-9.

    Args:
        A: Row-stochastic weights.
        most: The bound to confirm, below 1.
    """
    lap, v, logarithm = 64, _random_vector(A.shape[0]), 0.0
    for rounds in range(lap, 33 * lap, lap):
        for _ in range(lap):
            v = A @ v
            v -= v.mean()
        size = float(np.linalg.norm(v))
        logarithm += np.log(size) if size > 0 else -np.inf
        if logarithm <= np.log(_UNLIKELY) + rounds * np.log(most):
            return True
        if rounds > lap and size >= most**lap:
            return False  # the decay is not faster than the bound
        v /= size
    return False


def _gap_by_arnoldi(A: CSR, pi: Floats, restarts: int) -> float | None:
    largest = _largest(lambda v: A @ v - pi @ v, _random_vector(A.shape[0]), count=2, restarts=restarts)
    return None if largest is None else float(1 - np.abs(largest[0]).max())


def _gap_by_factorization(A: CSR, pi: Floats, proven: bool) -> float | None:
    r"""Find the eigenvalues nearest to 1: enough to prove that no other is larger in modulus, or 32.

    With :math:`a = \min_i A_{ii}` every eigenvalue :math:`1 - w` lies in the disc of centre a that touches 1
    (Gershgorin), so :math:`|w|^2 \le 2 (1 - a) \Re w` and :math:`|1 - w|^2 \le 1 - |w|^2 a / (1 - a)`: far from
    1 is small in modulus. If A is reversible, w is real and at most :math:`2 (1 - a)`, which is a stronger bound.
    """
    from scipy.sparse.linalg import splu

    n, a = A.shape[0], float(A.diagonal().min())
    if a == 0 or not _is_narrow(A):
        return None
    # A - I is singular; the projection removes the direction in which the small shift leaves it nearly singular.
    shift = 1e-10
    factors = splu((A - (1 + shift) * eye_array(n)).tocsc())

    def solve(v: Floats) -> Floats:
        u: Floats = factors.solve(v - pi @ v)
        return u - pi @ u

    flow = A.multiply(pi[:, None]).tocsr()
    reversible = np.abs((flow - flow.T).data).max(initial=0) <= 1e-12 * flow.max()
    for count in (8, 32) if proven else (32,):
        nearest = _largest(solve, _random_vector(n), count, restarts=10)
        if nearest is None:
            return None
        w = -shift - 1 / nearest[0]
        loss = float((2 * w.real - np.abs(w) ** 2).min())  # 1 - |1 - w|^2, without the cancellation
        far = float(np.abs(w).max())
        loss_beyond = min(2 * far - far**2, 4 * a * (1 - a)) if reversible else far**2 * a / (1 - a)
        if loss <= loss_beyond or not proven:
            return float(loss / (1 + np.sqrt(1 - loss)))
    return None


def _gap_by_decay(A: CSR, pi: Floats) -> float | None:
    """Mix a random vector until its rates of decay over k and over 2 k rounds agree."""
    v = _random_vector(A.shape[0])
    before = np.inf
    for rounds in (64, 128, 256, 512, 1024, 2048):
        if rounds * A.nnz > _ENTRIES_TO_VISIT:
            return None
        logarithm = 0.0
        for _ in range(rounds):
            v = A @ v
            v -= pi @ v
            size = float(np.linalg.norm(v))
            if size == 0:
                return 1.0
            v /= size
            logarithm += np.log(size)
        gap = -float(np.expm1(logarithm / rounds))
        if abs(gap - before) <= 3e-3 * gap:
            return gap
        before = gap
    return None


def _random_vector(n: int) -> Floats:
    return np.random.default_rng(0).standard_normal(n)  # fixed, so that results are reproducible


def _largest(product: Callable[[Floats], Floats], start: Floats, count: int, restarts: int) -> Any:
    """Return the eigenvalues of largest modulus and their vectors, or None if Arnoldi does not converge."""
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigs

    n = start.size
    linear_map = LinearOperator((n, n), matvec=lambda v: product(v.ravel()), dtype=np.float64)
    try:
        return eigs(linear_map, k=count, v0=start, ncv=max(40, 2 * count + 1), maxiter=restarts, tol=1e-11)
    except ArpackError:
        return None


def _is_narrow(A: CSR) -> bool:
    """Whether A, with reordered agents, can be factorized in seconds, as for long and planar graphs."""
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    order = reverse_cuthill_mckee(A + A.T, symmetric_mode=True)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    entries = A.tocoo()
    bandwidth = int(np.abs(place[entries.row] - place[entries.col]).max())
    return bandwidth**2 * len(order) <= 4e10
