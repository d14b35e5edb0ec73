import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd import graphs, theory, weights
from d3gd.errors import D3GDError, ProblemError, SettingsError, WeightsError
from tests.helpers.strategies import examples

ORDERS = ["before", "after"]


def random_weights(graph, rng):
    """Positive weights on every edge, rows summing to one."""
    values = rng.uniform(0.2, 1.0, graph.sources.size)
    return graph.matrix(values / np.add.reduceat(values, graph.indptr[:-1])[graph.targets])


def row_keeping_direction(graph, rng):
    """A direction along the edges that leaves every row's sum as it is."""
    values = rng.standard_normal(graph.sources.size)
    means = np.add.reduceat(values, graph.indptr[:-1]) / np.diff(graph.indptr)
    return values - means[graph.targets]


@pytest.mark.parametrize("scale", [1e160, 1e200, 1e307])
def test_finite_arguments_beyond_the_range_of_results_are_refused(scale):
    A, X = weights.metropolis(graphs.ring(4)), np.arange(12.0).reshape(4, 3)
    even, problem = np.full(4, 0.25), d3gd.problems.quadratic(agents=4, dim=3)
    for call in (
        lambda: theory.lyapunov(A, scale * X, problem, 0.1, 1.0),
        lambda: theory.lyapunov(A, X, problem, 0.1, L=scale),
        lambda: theory.design_function(A, scale * X, X, even, 0.1, even),
        lambda: theory.design_gradient(A, scale * X, scale * X, even, 0.1, even),
        lambda: theory.steady_disagreement(A, X, scale),
        lambda: theory.steady_gradient(A, scale * X, 1.0),
    ):
        with pytest.raises(D3GDError, match="exceeds the range"):
            call()


def textbook_deviation(A, G, step_size, combine):
    """The formulas of the module's docstring, with the matrix M that the code never forms; A may be a stack."""
    n = A.shape[-1]
    rest = np.eye(n) - np.swapaxes(A, -1, -2)
    rest[..., -1, :] = 1  # one equation of pi (I - A) = 0 is redundant; the sum takes its place
    pi = np.linalg.solve(rest, np.eye(n)[:, -1:])[..., 0]
    M = np.eye(n) - A + pi[..., None, :]
    forcing = -step_size / n * (G / pi[..., :, None] - G.sum(axis=0))
    return np.linalg.solve(M, forcing if combine == "before" else A @ forcing)


def textbook_disagreement(A, G, step_size, combine):
    D = textbook_deviation(A, G, step_size, combine)
    return 2 / A.shape[-1] * np.sum((D - D.mean(axis=-2, keepdims=True)) ** 2, axis=(-1, -2))


def central_difference(function, A, direction, eps):
    ahead, behind = A.copy(), A.copy()
    ahead.data = A.data + eps * direction
    behind.data = A.data - eps * direction
    return (function(ahead) - function(behind)) / (2 * eps)


class TestConstants:
    @pytest.mark.parametrize("n", [1, 2, 7])
    def test_closed_forms_where_every_column_sums_to_one(self, n):
        c = theory.constants(weights.metropolis(graphs.complete(n)))
        assert c.n == n
        assert c.gap == pytest.approx(1)
        assert c.C_pi1 == pytest.approx(n - 1)
        assert c.C_pi2 == pytest.approx(n**3)
        assert c.spectral_norm == pytest.approx(0, abs=1e-12)

    def test_doubly_stochastic_ring(self):
        n = 9
        c = theory.constants(weights.metropolis(graphs.ring(n)))  # half on itself, half on the one before
        assert c.pi == pytest.approx(1 / n)
        assert (c.C_pi1, c.C_pi2) == pytest.approx((n - 1, n**3))
        assert c.spectral_radius == pytest.approx(math.cos(math.pi / n))
        assert c.spectral_norm == pytest.approx(c.spectral_radius)  # a circulant matrix is normal
        assert c.frobenius_norm == pytest.approx(math.sqrt(n / 2 - 1))

    @examples(25)
    @given(seed=st.integers(0, 10**6), n=st.integers(2, 12))
    def test_relations_on_any_weights(self, seed, n):
        graph = graphs.erdos_renyi(n, 0.5, seed=seed)
        A = random_weights(graph, np.random.default_rng(seed))
        c = theory.constants(A)
        assert c.C_pi1 == pytest.approx(np.linalg.norm(np.eye(n) - c.pi) ** 2)
        assert c.C_pi1 >= n - 1 - 1e-9
        assert c.C_pi2 >= n**3 * (1 - 1e-9)
        assert c.spectral_radius == pytest.approx(1 - c.gap)
        assert c.spectral_radius <= c.spectral_norm + 1e-9
        assert c.spectral_norm <= c.frobenius_norm + 1e-9

    def test_the_frobenius_reading_of_eq_spectral_fails_on_the_papers_own_kind_of_graph(self):
        c = theory.constants(weights.metropolis(graphs.erdos_renyi(20, 0.2, seed=0)))
        assert c.spectral_radius < 1 < c.frobenius_norm

    def test_large_networks_leave_the_norms_out(self):
        c = theory.constants(weights.metropolis(graphs.ring(2001)))
        assert c.spectral_norm is None
        assert c.frobenius_norm is None
        assert "not computed above 2000 agents" in str(c)


class TestStepBounds:
    def test_closed_forms_on_a_ring(self):
        n, L, C0 = 5, 2.0, 3.0
        A = weights.metropolis(graphs.ring(n))
        rho = 1 - math.cos(math.pi / n)
        b = theory.step_bounds(A, L, C0)
        assert b.printed == pytest.approx(n * rho / (2 * L * math.sqrt((n - 1) * (n**3 + C0))))
        assert b.consensus == pytest.approx(b.printed / 2)
        assert b.descent == pytest.approx(1 / (4 * L))
        assert b.gradient**2 == pytest.approx(n**3 * rho**2 / (80 * (n**3 + C0 / rho)))
        assert b.gradient_repaired == pytest.approx(b.gradient / L)
        assert b.proof == min(b.consensus, b.descent, b.gradient, b.gradient_repaired)

    def test_the_transients_constant_only_lowers_them(self):
        A = weights.uniform(graphs.erdos_renyi(8, 0.4, seed=1))
        without, larger = theory.step_bounds(A, 1.0), theory.step_bounds(A, 1.0, C0=1e4)
        assert larger.printed < without.printed
        assert larger.gradient < without.gradient
        assert larger.descent == without.descent

    def test_one_agent_has_nobody_to_agree_with(self):
        b = theory.step_bounds([[1.0]], L=1.0)
        assert b.consensus == math.inf
        assert b.proof == pytest.approx(math.sqrt(1 / 80))

    def test_the_table_shows_every_bound(self):
        assert len(str(theory.step_bounds([[0.5, 0.5], [0.5, 0.5]], L=1.0)).splitlines()) == 6

    @pytest.mark.parametrize("bad", [{"L": 0.0}, {"L": math.nan}, {"L": 1.0, "C0": -1.0}, {"L": 1.0, "C0": math.inf}])
    def test_bad_constants_are_refused(self, bad):
        with pytest.raises(SettingsError, match="finite number"):
            theory.step_bounds([[0.5, 0.5], [0.5, 0.5]], **bad)


class TestLyapunov:
    def test_value(self):
        problem = d3gd.problems.quadratic(agents=4, dim=3, seed=2)
        A = weights.uniform(graphs.erdos_renyi(4, 0.5, seed=3))
        X = np.random.default_rng(0).standard_normal((4, 3))
        pi, rho = weights.perron(A), weights.spectral_gap(A)
        mean = sum(pi[i] * X[i] for i in range(4))
        spread = sum(float((X[i] - mean) @ (X[i] - mean)) for i in range(4))
        F = np.mean([problem.losses(np.tile(mean, (4, 1)))])
        assert theory.lyapunov(A, X, problem, 0.1, 2.0) == pytest.approx(F + 3 * 0.1 * 4 / (4 * rho) * spread)
        assert theory.lyapunov(A, X, problem, 0.1, 2.0, 10 / 3) == pytest.approx(F + 0.4 / (1.2 * rho) * spread)

    @pytest.mark.parametrize("factor", [3, 10 / 3])
    def test_decreases_under_steps_that_the_proof_allows(self, factor):
        graph = graphs.erdos_renyi(6, 0.5, seed=0)
        A = weights.metropolis(graph)
        # One optimum for all: without heterogeneity there, Theorem 2.5's error term vanishes.
        problem = d3gd.problems.quadratic(agents=6, dim=3, seed=0, heterogeneity=0.0)
        gamma = theory.step_bounds(A, problem.smoothness).proof
        values = []

        def watch(snapshot):
            values.append(theory.lyapunov(A, snapshot.x, problem, gamma, problem.smoothness, factor))

        warmup = 60  # while y is still on its way, the theorem allows O(gamma lambda^2k) of increase
        x0 = np.random.default_rng(1).standard_normal((6, 3))
        d3gd.run(
            d3gd.DiDGD(step_size=gamma, warmup=warmup),
            graph,
            problem,
            iterations=warmup + 200,
            every=1,
            x0=x0,
            callbacks=[watch],
        )
        assert np.all(np.diff(values[warmup:]) < 0)


class TestDesignFunction:
    @staticmethod
    def setting(seed, n=7, d=4):
        rng = np.random.default_rng(seed)
        graph = graphs.erdos_renyi(n, 0.4, seed=seed)
        A = random_weights(graph, rng)
        X, G = rng.standard_normal((2, n, d))
        return graph, A, X, G, rng.uniform(0.1, 0.4, n), rng

    def test_is_what_the_next_deviation_owes_to_the_weights(self):
        graph, A, X, G, y, _ = self.setting(0)
        n, gamma, pi = graph.n, 0.3, weights.perron(A)
        away = np.eye(n) - pi
        after = away @ (A @ X - gamma / n * G / y[:, None])
        independent_of_A = (gamma / n) ** 2 * np.sum((away @ (G / y[:, None])) ** 2)
        J = theory.design_function(A, X, G, y, gamma, pi)
        assert np.sum(after**2) == pytest.approx(J + independent_of_A)

    @examples(20)
    @given(seed=st.integers(0, 10**6))
    def test_gradient_is_exact(self, seed):
        graph, A, X, G, y, rng = self.setting(seed)
        pi, direction = weights.perron(A), rng.standard_normal(graph.sources.size)
        slope = theory.design_gradient(A, X, G, y, 0.3, pi) @ direction
        J = central_difference(lambda B: theory.design_function(B, X, G, y, 0.3, pi), A, direction, 1e-3)
        assert slope == pytest.approx(J, rel=1e-9, abs=1e-9)  # J is quadratic, so central differences are exact


class TestSteadyState:
    @pytest.mark.parametrize("combine", ORDERS)
    def test_textbook_form(self, combine):
        rng = np.random.default_rng(5)
        A = random_weights(graphs.erdos_renyi(8, 0.3, seed=5), rng)
        G = rng.standard_normal((8, 3))
        D = theory.steady_deviation(A, G, 0.2, combine)
        assert pytest.approx(textbook_deviation(A.toarray(), G, 0.2, combine)) == D
        assert weights.perron(A) @ D == pytest.approx(0, abs=1e-12)

    def test_combining_after_mixes_the_deviations_once_more(self):
        rng = np.random.default_rng(6)
        A = random_weights(graphs.erdos_renyi(8, 0.3, seed=6), rng)
        G = rng.standard_normal((8, 3))
        mixed = A @ theory.steady_deviation(A, G, 0.2)
        assert pytest.approx(mixed) == theory.steady_deviation(A, G, 0.2, "after")

    @pytest.mark.parametrize("weighting", [weights.metropolis, weights.uniform])
    def test_didgd_settles_there(self, weighting):
        graph = graphs.erdos_renyi(10, 0.3, seed=4)
        G = np.random.default_rng(4).standard_normal((10, 5))
        problem = d3gd.problems.from_functions(agents=10, dim=5, gradient=lambda i, x: G[i])
        A = weighting(graph)
        result = d3gd.run(
            d3gd.DiDGD(step_size=0.1), graph, problem, iterations=1000, every=1000, weights=A, metrics=["disagreement"]
        )
        expected = theory.steady_disagreement(A, G, 0.1)
        assert result.metrics["disagreement"][-1] == pytest.approx(expected, rel=1e-8)
        deviation = result.x - weights.perron(A) @ result.x
        assert deviation == pytest.approx(theory.steady_deviation(A, G, 0.1), abs=1e-9)

    def test_adapt_then_combine_settles_there(self):
        graph = graphs.erdos_renyi(10, 0.3, seed=4)
        A, G = weights.uniform(graph), np.random.default_rng(4).standard_normal((10, 5))
        pi, x = weights.perron(A), np.zeros((10, 5))
        for _ in range(1000):
            x = A @ (x - 0.1 / (10 * pi[:, None]) * G)
        disagreement = np.mean([np.sum((x[i] - x[j]) ** 2) for i in range(10) for j in range(10)])
        assert disagreement == pytest.approx(theory.steady_disagreement(A, G, 0.1, "after"), rel=1e-8)
        assert x - pi @ x == pytest.approx(theory.steady_deviation(A, G, 0.1, "after"), abs=1e-9)

    @pytest.mark.parametrize("combine", ORDERS)
    @examples(20)
    @given(seed=st.integers(0, 10**6), n=st.integers(2, 12))
    def test_gradient_is_exact(self, combine, seed, n):
        rng = np.random.default_rng(seed)
        graph = graphs.erdos_renyi(n, 0.4, seed=seed)
        A, G = random_weights(graph, rng), rng.standard_normal((n, 3))
        direction = row_keeping_direction(graph, rng)

        def value(B):
            return theory.steady_disagreement(B, G, 0.5, combine)

        # Two steps, so that the leading error of the differences can be taken out (Richardson).
        eps = 2e-4 * A.data.min()
        coarse, fine = (central_difference(value, A, direction, e) for e in (2 * eps, eps))
        h = theory.steady_gradient(A, G, 0.5, combine)
        scale = np.linalg.norm(h) * np.linalg.norm(direction) + value(A)
        assert abs(h @ direction - (4 * fine - coarse) / 3) <= 1e-7 * scale

    @pytest.mark.parametrize("combine", ORDERS)
    def test_gradient_is_normalised_so_that_scaling_a_row_costs_nothing(self, combine):
        graph = graphs.erdos_renyi(9, 0.4, seed=1)
        rng = np.random.default_rng(1)
        A, G = random_weights(graph, rng), rng.standard_normal((9, 3))
        h = theory.steady_gradient(A, G, 0.5, combine)
        assert np.add.reduceat(A.data * h, graph.indptr[:-1]) == pytest.approx(0, abs=1e-10 * np.abs(h).max())

    def test_agents_who_count_for_little(self):
        graph = graphs.ring(3)
        A = graph.matrix([1 - 1e-9, 1e-9, 0.5, 0.5, 0.5, 0.5])  # agent 0 hardly listens, so it counts for almost all
        G = np.random.default_rng(0).standard_normal((3, 2))
        pi = weights.perron(A)
        D = theory.steady_deviation(A, G, 1.0)
        forcing = -(G / pi[:, None] - G.sum(axis=0)) / 3
        residual = D - A @ D - forcing
        assert np.abs(residual).max() <= 1e-6 * np.abs(forcing).max()

    @pytest.mark.parametrize("function", [theory.steady_deviation, theory.steady_disagreement, theory.steady_gradient])
    def test_bad_input_is_refused(self, function):
        A, G = weights.metropolis(graphs.ring(3)), np.ones((3, 2))
        with pytest.raises(SettingsError, match="combine = 'between'"):
            function(A, G, 0.1, "between")
        with pytest.raises(ProblemError, match=r"shape \(2, 2\)"):
            function(A, G[:2], 0.1)
        with pytest.raises(ProblemError, match="NaN"):
            function(A, G * np.nan, 0.1)
        with pytest.raises(WeightsError, match="cannot be reached"):
            function(np.eye(3), G, 0.1)
        with pytest.raises(D3GDError, match="up to 2000 agents"):
            function(weights.metropolis(graphs.ring(2001)), np.ones((2001, 1)), 0.1)


def grid_on_ring_of_three(points):
    """Every choice of the three free weights on a grid, as a stack of matrices."""
    kept = np.array(list(itertools.product(np.linspace(0, 1, points + 2)[1:-1], repeat=3)))
    A = np.zeros((len(kept), 3, 3))
    for i in range(3):
        A[:, i, i] = kept[:, i]
        A[:, i, i - 1] = 1 - kept[:, i]
    return A


class TestOptimalWeights:
    @pytest.mark.parametrize("combine", ORDERS)
    @pytest.mark.parametrize("seed", [0, 1, 2])
    def test_a_grid_over_all_weights_finds_nothing_better(self, combine, seed):
        graph = graphs.ring(3)
        G = np.random.default_rng(seed).standard_normal((3, 4))
        best = theory.optimal_weights(graph, G, 0.1, combine)
        searched = textbook_disagreement(grid_on_ring_of_three(40), G, 0.1, combine).min()
        assert best.value <= searched * (1 + 1e-4)
        assert best.value >= 0.5 * searched  # and it is no other quantity that became so small

    def test_a_search_over_all_weights_on_a_denser_graph_finds_nothing_better(self):
        graph = graphs.Digraph.from_edges(3, [(0, 1), (1, 2), (2, 0), (0, 2)])
        rng = np.random.default_rng(3)
        G = rng.standard_normal((3, 4))
        drawn = np.where(graph.matrix(np.ones(7)).toarray() > 0, rng.exponential(size=(100_000, 3, 3)), 0.0)
        drawn /= drawn.sum(axis=2, keepdims=True)
        best = theory.optimal_weights(graph, G)
        searched = textbook_disagreement(drawn, G, 1.0, "before").min()
        assert 0.9 * searched <= best.value <= searched * (1 + 1e-4)

    @pytest.mark.parametrize("combine", ORDERS)
    def test_weights_are_valid_and_the_values_are_theirs(self, combine):
        graph = graphs.erdos_renyi(8, 0.4, seed=0)
        G = np.random.default_rng(0).standard_normal((8, 30))
        best = theory.optimal_weights(graph, G, 0.1, combine)
        weights.check(best.weights, graph)
        assert best.weights.data.min() > 0
        assert best.value == theory.steady_disagreement(best.weights, G, 0.1, combine)
        assert best.metropolis == theory.steady_disagreement(weights.metropolis(graph), G, 0.1, combine)
        assert best.share(best.value) == pytest.approx(1)
        assert best.share(best.metropolis) == pytest.approx(0)

    def test_is_stationary_and_weights_nearby_are_worse(self):
        graph = graphs.erdos_renyi(8, 0.4, seed=1)
        G = np.random.default_rng(1).standard_normal((8, 30))
        best = theory.optimal_weights(graph, G)
        h = theory.steady_gradient(best.weights, G, 1.0)
        assert np.abs(best.weights.data * h).max() <= 1e-3 * best.value  # in logarithms of weights
        rng = np.random.default_rng(2)
        for _ in range(200):
            nearby = 0.99 * best.weights + 0.01 * random_weights(graph, rng)
            assert theory.steady_disagreement(nearby, G, 1.0) > best.value

    def test_sparse_digraphs_gain_the_most(self):
        G = np.random.default_rng(0).standard_normal((20, 30))
        ratios = {}
        for p in (0.2, 0.6):
            best = theory.optimal_weights(graphs.erdos_renyi(20, p, seed=0), G)
            ratios[p] = best.value / best.metropolis
        assert ratios[0.2] < 0.2 < ratios[0.6] < 0.7

    def test_step_size_scales_values_and_not_weights(self):
        graph, G = graphs.ring(4), np.random.default_rng(2).standard_normal((4, 3))
        one, tenth = theory.optimal_weights(graph, G, 1.0), theory.optimal_weights(graph, G, 0.1)
        assert tenth.value == pytest.approx(one.value / 100)
        assert tenth.weights.data == pytest.approx(one.weights.data)

    def test_many_dimensions_give_what_their_inner_products_give(self):
        graph = graphs.ring(4)
        G = np.random.default_rng(2).standard_normal((4, 3))
        rotation = np.linalg.qr(np.random.default_rng(3).standard_normal((50, 3)))[0].T
        assert theory.optimal_weights(graph, G @ rotation).value == pytest.approx(
            theory.optimal_weights(graph, G).value, rel=1e-6
        )

    def test_a_good_start_is_not_made_worse(self):
        graph, G = graphs.erdos_renyi(8, 0.4, seed=2), np.random.default_rng(2).standard_normal((8, 30))
        best = theory.optimal_weights(graph, G)
        assert theory.optimal_weights(graph, G, start=best.weights).value <= best.value

    def test_agents_who_want_the_same_need_no_weights(self):
        graph, G = graphs.ring(4), np.ones((4, 2))
        assert theory.optimal_weights(graph, G).value == pytest.approx(0, abs=1e-20)
        none = theory.optimal_weights(graph, 0 * G)
        assert none.value == none.metropolis == 0
        with pytest.raises(D3GDError, match="no gain to share"):
            none.share(0.1)

    def test_a_complete_graph_combining_after_agrees_entirely(self):
        G = np.random.default_rng(0).standard_normal((5, 9))
        assert theory.optimal_weights(graphs.complete(5), G, combine="after").value <= 1e-20

    def test_a_graph_that_does_not_connect_everyone_is_refused(self):
        with pytest.raises(D3GDError, match="not strongly connected"):
            theory.optimal_weights(graphs.Digraph.from_edges(3, [(0, 1), (1, 2)]), np.ones((3, 1)))
