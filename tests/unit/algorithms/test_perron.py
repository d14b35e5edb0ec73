"""The contract of PerronD3GD: corrections, limits, locality, traffic, resuming, and the command line."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd import cli
from d3gd.network import Network
from d3gd.problems import Problem
from d3gd.rules.base import gain_under
from d3gd.spectrum import spectral_gap
from d3gd.state import flatten
from tests.helpers.methods import advance
from tests.helpers.stepping import network, random_network, states
from tests.helpers.strategies import digraphs, examples, row_stochastic
from tests.paper.textbook import perron
from tests.unit.runs.test_files import same

RULES = ["fixed", "planned", "local"]
ORDERS = ["after", "before"]
EVERY_KIND = [
    *(d3gd.PerronD3GD(step_size=0.02, rule=rule, combine=order) for rule in RULES for order in ORDERS),
    *(d3gd.FROST(step_size=0.02, rule=rule, combine=order) for rule in ("mixing", "fixed") for order in ORDERS),
]
IDS = [f"{type(a).__name__}-{a.rule}-{a.combine}" for a in EVERY_KIND]
each_kind = pytest.mark.parametrize("algorithm", EVERY_KIND, ids=IDS)


class Diagonal(Problem):
    """Quadratics with diagonal Hessians: cheap in any dimension."""

    def __init__(self, agents, dim, seed=0):
        rng = np.random.default_rng(seed)
        self.agents, self.dim = agents, dim
        self.h, self.b = rng.uniform(0.1, 1.0, (agents, dim)), rng.normal(size=(agents, dim))

    def gradients(self, x, k=None):
        return self.h * (x - self.b)


class Changed(Diagonal):
    """The same, but from an iteration on one agent has other data."""

    def __init__(self, agents, dim, seed, changed, since):
        super().__init__(agents, dim, seed)
        self.changed, self.since = changed, since

    def gradients(self, x, k=None):
        g = super().gradients(x, k)
        if k >= self.since:
            g[self.changed] += 1e4  # large, so that no rounding on the way swallows it
        return g


# The update -------------------------------------------------------------------------------------------------------


def test_without_correction_fixed_weights_are_di_dgd_with_the_exact_perron_vector():
    graph, A = random_network(3)
    problem = d3gd.problems.quadratic(agents=6, dim=4, seed=3)
    algorithm = d3gd.PerronD3GD(step_size=0.05, rule="fixed", combine="before", correct=False)
    path = states(algorithm, graph, A, problem, 60)
    dense, x = A.toarray(), np.zeros((6, 4))
    for s in path:
        assert np.allclose(s.x, x, rtol=1e-11, atol=1e-13)
        x = dense @ x - 0.05 / (6 * perron(dense)[:, None]) * problem.gradients(x)


@pytest.mark.parametrize("order", ORDERS)
def test_the_corrected_update_is_the_one_in_the_docstring(order):
    graph, A = random_network(4)
    problem = d3gd.problems.quadratic(agents=6, dim=4, seed=4)
    algorithm = d3gd.PerronD3GD(step_size=0.05, rule="fixed", combine=order)
    net = network(algorithm, graph, A)
    dense = A.toarray()
    pi = perron(dense)[:, None]
    x, w = np.zeros((2, 6, 4))
    for s in states(algorithm, graph, A, problem, 60):
        assert np.allclose(s.x, x, rtol=1e-9, atol=1e-12)
        assert np.allclose(s.w, w, rtol=1e-9, atol=1e-12)
        beta = s.rule.use(net).gain
        push = 0.05 / pi * (problem.gradients(x) / 6 + w)
        m = x - push if order == "after" else x
        x = dense @ m - (push if order == "before" else 0)
        w = w + beta / 0.05 * pi * (m - dense @ m)


@examples(15)
@given(graph=digraphs(min_n=1, max_n=8), data=st.data(), rule=st.sampled_from(["fixed", "planned"]))
def test_corrections_sum_to_zero_at_every_iteration(graph, data, rule):
    A = data.draw(row_stochastic(graph))
    order = data.draw(st.sampled_from(ORDERS))
    algorithm = d3gd.PerronD3GD(step_size=0.02, rule=rule, combine=order)
    path = states(algorithm, graph, A, Diagonal(graph.n, 3, data.draw(st.integers(0, 99))), 80)  # two plans or three
    for s in path:
        assert np.abs(s.w.sum(axis=0)).max() <= 1e-12 * (1 + np.abs(s.w).max() + np.abs(s.x).max())
    assert graph.n == 1 or np.abs(path[-1].w).max() > 0


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rule", ["fixed", "planned", "local"])
@pytest.mark.parametrize("seed", [0, 3])
def test_models_come_to_rest_at_the_optimum_and_agree(rule, order, seed):
    graph, A = random_network(seed, n=8)
    problem = d3gd.problems.quadratic(agents=8, dim=4, seed=seed)
    algorithm = d3gd.PerronD3GD(step_size=0.04, rule=rule, combine=order)
    result = d3gd.run(algorithm, graph, problem, weights=A, iterations=2500, every=2500)
    assert np.abs(result.x - problem.optimum).max() < 1e-6
    assert result.metrics["disagreement"][-1] < 1e-12


@pytest.mark.parametrize("rule", ["fixed", "planned", "local"])
@pytest.mark.parametrize(("before", "after"), [(0.2, 0.02), (0.02, 0.2)])
def test_a_change_of_the_step_size_leaves_models_at_rest_where_they_are(rule, before, after):
    graph, problem = d3gd.graphs.ring(20), d3gd.problems.quadratic(agents=20, dim=3, seed=0)
    algorithm = d3gd.PerronD3GD(step_size=lambda k: before if k < 3000 else after, rule=rule)
    result = d3gd.run(algorithm, graph, problem, iterations=3600, every=20)
    assert result.metrics["disagreement"][result.iterations >= 3000].max() < 1e-11


@pytest.mark.parametrize("graph", [d3gd.graphs.erdos_renyi(6, 0.4, seed=seed) for seed in range(3)], ids=str)
def test_single_precision_ends_where_gradient_descent_in_single_precision_does(graph):
    problem = d3gd.problems.quadratic(agents=6, dim=3, seed=1)
    ends = {
        name: d3gd.run(algorithm, graph, problem, iterations=10_000, every=10_000, dtype="float32")
        for name, algorithm in {
            "corrected": d3gd.PerronD3GD(step_size=0.05, rule="fixed"),
            "centralized": d3gd.Centralized(step_size=0.05),
        }.items()
    }
    floor = ends["centralized"].metrics["stationarity"][-1]
    assert ends["corrected"].metrics["stationarity"][-1] <= 10 * floor


def test_the_default_rule_is_planned_up_to_300_agents_and_fixed_above():
    for n, name in ((2, "PlanState"), (300, "PlanState"), (301, "Known")):
        graph = d3gd.graphs.exponential(n)
        algorithm = d3gd.PerronD3GD(step_size=0.1)
        state = algorithm.init(network(algorithm, graph, d3gd.weights.uniform(graph)), np.zeros((n, 1)))
        assert type(state.rule).__name__ == name


@given(graph=digraphs(max_n=12), data=st.data())
def test_the_gain_is_half_of_what_the_gap_allows_and_at_most_a_twentieth(graph, data):
    A = data.draw(row_stochastic(graph))
    shrinks = 1 - spectral_gap(A)
    expected = min(0.05, 0.5 * (1 / shrinks - 1)) if shrinks > 0 else 0.05
    assert gain_under(A) == expected


def test_a_gap_that_cannot_change_the_gain_is_not_worked_out(monkeypatch):
    def refuse(A):
        raise AssertionError("minutes, for a large network")

    graph = d3gd.graphs.regular(5000, 10)
    A = d3gd.weights.metropolis(graph)
    monkeypatch.setattr("d3gd.rules.base.spectral_gap", refuse)
    assert gain_under(A) == 0.05
    slow = d3gd.graphs.ring(400)
    algorithm = d3gd.PerronD3GD(step_size=0.1, correct=False)  # has no use for a gain
    net = network(algorithm, slow, d3gd.weights.metropolis(slow))
    assert algorithm.init(net, np.zeros((400, 1))).rule.gain == 0


@each_kind
def test_one_agent_alone_descends(algorithm):
    problem = d3gd.problems.quadratic(agents=1, dim=3)
    result = d3gd.run(dataclasses.replace(algorithm, step_size=0.5), d3gd.graphs.ring(1), problem, iterations=200)
    assert np.abs(result.x - problem.optimum).max() < 1e-4


@each_kind
def test_nothing_moves_where_there_is_nothing_to_learn(algorithm):
    graph, A = random_network(5)
    problem = d3gd.problems.from_functions(agents=6, dim=2, gradient=lambda i, x: 0 * x)
    result = d3gd.run(algorithm, graph, problem, weights=A, iterations=130, x0=np.ones(2))
    assert result.status == "completed"
    assert np.allclose(result.x, 1.0)
    assert np.allclose(result.weights.sum(axis=1), 1.0)


@each_kind
@pytest.mark.parametrize("step_size", [10.0, 1e8, 1e200])
def test_divergence_is_a_status(algorithm, step_size):
    graph, A = random_network(6)
    problem = d3gd.problems.quadratic(agents=6, dim=3)
    algorithm = dataclasses.replace(algorithm, step_size=step_size)
    result = d3gd.run(algorithm, graph, problem, weights=A, iterations=3000, every=7)
    assert result.status == "diverged"
    assert result.message


@each_kind
@pytest.mark.parametrize("when", [3, 6, 57, 64])
def test_gradients_that_turn_nan_end_the_run(algorithm, when):
    class Broken(Diagonal):
        def gradients(self, x, k=None):
            return super().gradients(x, k) if k is None or k < when else np.full_like(x, np.nan)

    graph, A = random_network(7)
    result = d3gd.run(algorithm, graph, Broken(6, 3), weights=A, iterations=130, every=200)
    assert result.status == "diverged"


@pytest.mark.parametrize(
    "wrong", [{"step_size": 0.0}, {"step_size": -1.0}, {"rule": "best"}, {"combine": "never"}, {"combine": ""}]
)
@pytest.mark.parametrize("kind", [d3gd.PerronD3GD, d3gd.FROST])
def test_bad_settings_get_one_line(kind, wrong):
    with pytest.raises(d3gd.D3GDError, match=next(iter(wrong))) as caught:
        kind(**{"step_size": 0.1} | wrong)
    assert "\n" not in str(caught.value)


# The one-way ring -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rule", ["auto", "local"])
def test_converges_on_a_one_way_ring_where_di_dgd_diverges(rule, order):
    graph, problem = d3gd.graphs.ring(50), d3gd.problems.quadratic(agents=50, dim=3, seed=1)
    assert d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, iterations=300).status == "diverged"
    algorithm = d3gd.PerronD3GD(step_size=0.1, rule=rule, combine=order)
    result = d3gd.run(algorithm, graph, problem, iterations=1500, every=500)
    assert result.status == "completed"
    assert (np.diff(result.metrics["stationarity"]) < 0).all()
    assert result.metrics["stationarity"][-1] < 0.1 * result.metrics["stationarity"][0]


# No leak ----------------------------------------------------------------------------------------------------------


def rows_of(state, graph):
    """Each array of a state with its agents: per agent, or per edge as its listener's."""
    for name, values in flatten(state).items():
        if values.ndim and len(values) == graph.n:
            yield name, values, np.arange(graph.n)
        elif values.ndim:
            yield name, values, graph.targets


@each_kind
@examples(10)
@given(graph=digraphs(min_n=2, max_n=9), data=st.data())
def test_no_part_of_the_state_learns_of_other_data_faster_than_one_link_an_iteration(algorithm, graph, data):
    A = data.draw(row_stochastic(graph))
    seed, changed = data.draw(st.integers(0, 99)), data.draw(st.integers(0, graph.n - 1))
    since = data.draw(st.integers(0, 130))  # in the midst of floods, plans and epochs, too
    hops = graph.hops_from(changed)
    last = since + hops.max()
    path = states(algorithm, graph, A, Diagonal(graph.n, 3, seed), last)
    other = states(algorithm, graph, A, Changed(graph.n, 3, seed, changed, since), last)
    for k, (s, t) in enumerate(zip(path, other, strict=True)):
        beyond = hops > k - since if k > since else np.full(graph.n, True)
        for (name, mine, agents), (_, theirs, _) in zip(rows_of(s, graph), rows_of(t, graph), strict=True):
            differs = (mine != theirs).reshape(len(mine), -1).any(axis=1)
            assert not (differs & beyond[agents]).any(), (name, k)


@each_kind
def test_a_model_feels_far_data_first_when_its_distance_says(algorithm):
    graph = d3gd.graphs.ring(8)
    A = d3gd.weights.uniform(graph)
    path = states(algorithm, graph, A, Diagonal(8, 3), 8)
    other = states(algorithm, graph, A, Changed(8, 3, 0, changed=2, since=0), 8)
    differs = np.array([(s.x != t.x).any(axis=1) for s, t in zip(path, other, strict=True)])
    hops = graph.hops_from(2)
    first = hops + 1 if algorithm.combine == "before" else np.maximum(hops, 1)
    assert differs.argmax(axis=0).tolist() == first.tolist()


@each_kind
def test_nobody_asks_for_all_agents_values(algorithm, monkeypatch):
    def refuse(*_):
        raise AssertionError("global knowledge")

    monkeypatch.setattr(Network, "everyone", refuse)
    monkeypatch.setattr(Network, "perron", refuse)
    monkeypatch.setattr("d3gd.transports.alone.Alone.gather", refuse)
    graph, A = random_network(8)
    path = states(algorithm, graph, A, Diagonal(6, 3), 130)
    net = network(algorithm, graph, A)
    assert np.isfinite(path[-1].x).all()
    assert algorithm.weights(net, path[-1]).shape == A.data.shape
    assert algorithm.scale(net, path[-1]).shape == (6,)


@each_kind
def test_the_reported_weights_are_row_stochastic_and_the_scale_is_their_perron_vector(algorithm):
    graph, A = random_network(9)
    net = network(algorithm, graph, A)
    for s in states(algorithm, graph, A, Diagonal(6, 3), 130)[::13]:
        a = graph.matrix(algorithm.weights(net, s)).toarray()
        assert a.sum(axis=1) == pytest.approx(1)
        assert a[graph.targets, graph.sources].min() > 0
        if getattr(algorithm, "rule", "") != "local":  # tracked there, and kept near the last one for a while
            assert algorithm.scale(net, s) == pytest.approx(perron(a))


# Traffic ----------------------------------------------------------------------------------------------------------


def traffic(algorithm, graph, dim, iterations=1000):
    """Bytes sent by the end of each iteration."""
    net = network(algorithm, graph, d3gd.weights.metropolis(graph))
    problem = Diagonal(graph.n, dim)
    s, sent = algorithm.init(net, np.zeros((graph.n, dim))), []
    for k in range(iterations):
        s = advance(algorithm, net, problem, s, k)
        sent.append(net.bytes_sent)
    return np.array(sent)


@pytest.mark.parametrize("graph", [d3gd.graphs.erdos_renyi(20, 0.2), d3gd.graphs.ring(20)], ids=["random", "ring"])
@pytest.mark.parametrize("algorithm", EVERY_KIND[2:6], ids=IDS[2:6])
def test_extra_traffic_over_di_dgd(algorithm, graph):
    base = 8 * graph.link_count * np.arange(1, 1001)  # Di-DGD's, for each of the d + n numbers of a message
    assert (traffic(d3gd.DiDGD(step_size=0.01), graph, 64, 50) == (64 + 20) * base[:50]).all()
    extra = traffic(algorithm, graph, 64) - (64 + 20) * base
    # From 64 numbers on, sketches have the same length, so what is sent beside the models does not depend on d.
    assert (traffic(algorithm, graph, 650, 130) - (650 + 20) * base[:130] == extra[:130]).all()
    assert (traffic(algorithm, graph, 10_000, 12) - (10_000 + 20) * base[:12] == extra[:12]).all()
    # Not only in the end: a run may stop at any iteration after the first hundred.
    assert (extra[99:] <= 0.10 * (650 + 20) * base[99:]).all()
    assert (extra[99:] <= 0.01 * (10_000 + 20) * base[99:]).all()


# Resuming ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", EVERY_KIND[2:8:2] + EVERY_KIND[5:6], ids=[*IDS[2:8:2], IDS[5]])
@examples(3)
@given(cut=st.integers(1, 149), every=st.integers(3, 12))
def test_an_interrupted_run_resumes_to_the_same_bits(tmp_path_factory, algorithm, cut, every):
    graph, A = random_network(10)
    options = {"weights": A, "iterations": 150, "every": every, "checkpoint_every": 40, "metrics": ["disagreement"]}
    problem = Diagonal(6, 70)
    straight = d3gd.run(algorithm, graph, problem, **options)

    def interrupt(snapshot):
        if snapshot.k >= cut:
            raise KeyboardInterrupt

    folder = tmp_path_factory.mktemp("run")
    with pytest.raises(KeyboardInterrupt):
        d3gd.run(algorithm, graph, problem, out=folder, callbacks=[interrupt], **options)
    resumed = d3gd.run(algorithm, graph, problem, out=folder, resume=True, **options)
    same(resumed, straight)
    same(d3gd.Result.load(folder), straight)


# The command line -------------------------------------------------------------------------------------------------

EXPERIMENT = """
iterations = 70
[graph]
kind = "erdos_renyi"
n = 6
p = 0.4
[problem]
kind = "quadratic"
dim = 3
[algorithm]
kind = "{kind}"
step_size = 0.05
{more}
"""


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("PerronD3GD", ""),
        ("PerronD3GD", 'rule = "local"\ncombine = "before"\ncorrect = false'),
        ("FROST", 'rule = "fixed"'),
    ],
)
def test_the_command_line_runs_it(tmp_path, monkeypatch, kind, more):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.format(kind=kind, more=more))
    assert cli.call(["run", "experiment.toml", "--out", "out"]) == 0
    options = {"rule": "local", "combine": "before", "correct": False} if "local" in more else {}
    options |= {"rule": "fixed"} if "fixed" in more else {}
    algorithm = getattr(d3gd, kind)(step_size=0.05, **options)
    graph, problem = d3gd.graphs.erdos_renyi(6, 0.4), d3gd.problems.quadratic(agents=6, dim=3)
    same(d3gd.Result.load(tmp_path / "out"), d3gd.run(algorithm, graph, problem, iterations=70))


def test_the_command_line_names_the_choices(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.format(kind="PerronD3GD", more='rule = "best"'))
    assert cli.call(["run", "experiment.toml", "--out", "out"]) == 2
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    assert "planned" in error
