"""The one-shot use of the refinement."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd import graphs, theory, weights
from d3gd.errors import D3GDError
from d3gd.problems import Problem
from d3gd.topologies import refined
from tests.helpers.strategies import examples, row_stochastic

Combine = Literal["after", "before"]


@given(st.data(), st.integers(3, 8), st.sampled_from(["after", "before"]), st.integers(0, 10**6))
@examples(20)
def test_agents_never_settle_further_apart_than_under_the_start(
    data: st.DataObject, n: int, combine: Combine, seed: int
) -> None:
    graph = graphs.erdos_renyi(n, 0.7, seed=seed)
    G = np.random.default_rng(seed).standard_normal((n, 4))
    start = data.draw(row_stochastic(graph))
    A = refined(graph, G, start=start, combine=combine)
    weights.check(A, graph)
    np.testing.assert_array_less(0.05 * start.data - 1e-12, A.data)
    before = theory.steady_disagreement(start, G, 0.1, combine)
    assert theory.steady_disagreement(A, G, 0.1, combine) <= before * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_unanchored_it_is_the_oracle(seed: int) -> None:
    graph = graphs.erdos_renyi(8, 0.5, seed=seed)
    G = np.random.default_rng(seed).standard_normal((8, 12))
    best = theory.optimal_weights(graph, G, 0.1)
    A = refined(graph, G, combine="before", anchor=0.0, least=0.0)
    assert theory.steady_disagreement(A, G, 0.1) == pytest.approx(best.value, rel=1e-3)


def test_where_everyone_hears_everyone_nothing_is_left_of_the_deviations() -> None:
    G = np.random.default_rng(0).standard_normal((5, 3))
    start = weights.lazy(graphs.complete(5))
    A = refined(graphs.complete(5), G, start=start, anchor=0.0)
    now, before = (theory.steady_disagreement(W, G, 1.0, "after") for W in (A, start))
    assert now < 1e-6 * before


def test_gradients_that_agree_or_vanish_leave_the_start() -> None:
    graph = graphs.star(4)
    assert np.array_equal(refined(graph, np.zeros((4, 2))).data, weights.metropolis(graph).data)


def test_a_problem_is_planned_for_by_its_gradients() -> None:
    graph, problem = graphs.ring(5), d3gd.problems.quadratic(agents=5, dim=3, seed=2)
    point = np.array([1.0, -2.0, 0.5])
    G = problem.gradients(np.tile(point, (5, 1)))
    assert np.array_equal(refined(graph, problem, at=point).data, refined(graph, G).data)
    assert np.array_equal(refined(graph, problem, at=np.tile(point, (5, 1))).data, refined(graph, G).data)
    assert np.array_equal(refined(graph, problem).data, refined(graph, problem.gradients(np.zeros((5, 3)))).data)


def test_the_noise_of_mini_batches_counts() -> None:
    graph = graphs.erdos_renyi(6, 0.6, seed=3)
    exact, noisy = (
        refined(graph, d3gd.problems.digits_classification(agents=6, batch=batch, seed=1)) for batch in (None, 2)
    )
    assert np.abs(exact.data - noisy.data).max() > 0.01


def test_a_problem_may_reuse_its_buffer() -> None:
    class Reusing(Problem):
        agents, dim, out = 5, 3, np.empty((5, 3))

        def __init__(self, *, copies: bool) -> None:
            self.copies = copies

        def gradients(self, x: np.ndarray, k: int | None = None) -> np.ndarray:
            noise = np.zeros(x.shape) if k is None else np.random.default_rng(k).normal(size=x.shape)
            self.out[:] = np.arange(15.0).reshape(5, 3) + noise
            return self.out.copy() if self.copies else self.out

    graph = graphs.ring(5)
    reused, copied = (refined(graph, Reusing(copies=copies)).data for copies in (False, True))
    assert np.array_equal(reused, copied)


def test_methods_run_with_them_and_agree_better() -> None:
    graph, problem = graphs.erdos_renyi(8, 0.5, seed=0), d3gd.problems.quadratic(agents=8, dim=5, seed=0)
    method = d3gd.PerronD3GD(step_size=0.02, rule="fixed", correct=False)
    optimum = d3gd.run(d3gd.PerronD3GD(step_size=0.02), graph, problem, iterations=3000).x.mean(axis=0)
    last = [
        d3gd.run(method, graph, problem, weights=A, iterations=1500).metrics["disagreement"][-1]
        for A in (None, refined(graph, problem, at=optimum))
    ]
    assert last[1] < last[0]


@pytest.mark.parametrize(
    ("data", "arguments", "words"),
    [
        (np.ones((3, 2)), {}, "shape .3, 2.; give one row for each of the 4 agents"),
        (np.full((4, 2), np.nan), {}, "gradients of agent 0 hold NaN"),
        (np.ones((4, 2)), {"at": np.zeros(2)}, "leave it out"),
        (d3gd.problems.quadratic(agents=3, dim=2), {}, "3 agents and the graph 4"),
        (d3gd.problems.quadratic(agents=4, dim=2), {"at": np.zeros(3)}, "at has shape .3,."),
        (np.ones((4, 2)), {"combine": "between"}, "combine = 'between'"),
        (np.ones((4, 2)), {"anchor": 1.0}, "anchor = 1.0"),
        (np.ones((4, 2)), {"least": -0.1}, "least = -0.1"),
        (np.ones((4, 2)), {"start": np.eye(4)}, "counting only links with positive weight"),
    ],
)
def test_bad_input(data: np.ndarray, arguments: dict[str, object], words: str) -> None:
    with pytest.raises(D3GDError, match=words):
        refined(graphs.ring(4), data, **arguments)  # type: ignore[arg-type]
