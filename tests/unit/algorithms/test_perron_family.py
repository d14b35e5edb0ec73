"""What PerronD3GD and FROST have in common: locality, hard cases, resuming, and the command line."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd import cli
from d3gd.network import Network
from d3gd.state import flatten
from tests.helpers.problems import Diagonal
from tests.helpers.stepping import network, random_network, states
from tests.helpers.strategies import digraphs, examples, row_stochastic
from tests.paper.textbook import perron
from tests.unit.runs.test_files import same

RULES = ["mixing", "planned", "fixed"]
EVERY_KIND = {
    **{f"PerronD3GD-{rule}": d3gd.PerronD3GD(step_size=0.02, rule=rule) for rule in RULES},
    "PerronD3GD-known": d3gd.PerronD3GD(step_size=0.02, rule="fixed", perron="known"),
    **{
        f"FROST-{rule}-{order}": d3gd.FROST(step_size=0.02, rule=rule, combine=order)
        for rule in ("mixing", "fixed")
        for order in ("after", "before")
    },
}


each_kind = pytest.mark.parametrize("algorithm", EVERY_KIND.values(), ids=EVERY_KIND)


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
    "wrong", [{"step_size": 0.0}, {"step_size": -1.0}, {"rule": "best"}, {"perron": "guessed"}, {"perron": ""}]
)
@pytest.mark.parametrize("kind", [d3gd.PerronD3GD, d3gd.FROST])
def test_bad_settings_get_one_line(kind, wrong):
    with pytest.raises(d3gd.D3GDError, match=next(iter(wrong))) as caught:
        kind(**{"step_size": 0.1} | wrong)
    assert "\n" not in str(caught.value)


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
    before = getattr(algorithm, "combine", "after") == "before"
    first = hops + 1 if before else np.maximum(hops, 1)
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
        assert algorithm.scale(net, s) == pytest.approx(perron(a))


RESUMED = ("PerronD3GD-mixing", "PerronD3GD-planned", "FROST-mixing-after")


@pytest.mark.parametrize("algorithm", [EVERY_KIND[name] for name in RESUMED], ids=RESUMED)
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
        ("PerronD3GD", 'rule = "planned"\nperron = "known"\ncorrect = false'),
        ("FROST", 'rule = "fixed"'),
    ],
)
def test_the_command_line_runs_it(tmp_path, monkeypatch, kind, more):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment.toml").write_text(EXPERIMENT.format(kind=kind, more=more))
    assert cli.call(["run", "experiment.toml", "--out", "out"]) == 0
    options = {"rule": "planned", "perron": "known", "correct": False} if "planned" in more else {}
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
