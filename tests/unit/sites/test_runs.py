"""Whole trainings, with sites as threads."""

import math
import threading
import time

import numpy as np
import pytest

import d3gd
from d3gd.errors import D3GDError, DivergedError, SettingsError, TransportError
from d3gd.result import Result
from d3gd.sites.clipping import Clipping
from d3gd.sites.collect import collected
from d3gd.sites.conversation import Conversation
from d3gd.sites.hub import Hub
from d3gd.sites.run import run
from d3gd.sites.settings import load
from d3gd.sites.status import read
from tests.helpers.launching import require
from tests.helpers.sites import AVERAGED, RING, folders, together

TWO_WAY = [*RING, *[(b, a) for a, b in RING]]


@pytest.fixture(autouse=True)
def quick_farewell(monkeypatch):
    monkeypatch.setattr("d3gd.sites.run._FAREWELL", 5.0)


def train(files, **changes):
    return together({name: lambda path=path: run(load(path, **changes)) for name, path in files.items()})


def test_a_free_pace_waits_for_nobody_and_still_learns(tmp_path):
    files = folders(tmp_path, iterations=300, more='pace = "free"\npatience = 0.2')
    found = train(files)
    assert [result.status for result in found.values()] == ["completed"] * 3
    assert all(result.metrics["waited"][-1] < 0.5 for result in found.values())
    assert all(result.metrics["loss"][-1] < result.metrics["loss"][0] for result in found.values())


def test_a_straggler_holds_nobody_up_and_is_heard_again(tmp_path, monkeypatch):
    files = folders(tmp_path, TWO_WAY, iterations=400, more="patience = 0.2")
    slow, post = threading.local(), Hub.post

    def delayed(hub, place, arrays):
        if hub.name == "c" and 10 <= place[0] < 30 and not getattr(slow, "slept", False):
            slow.slept = True
            time.sleep(0.6)
        post(hub, place, arrays)

    monkeypatch.setattr(Hub, "post", delayed)
    found = train(files)
    assert [result.status for result in found.values()] == ["completed"] * 3
    missed = found["a"].metrics["missed"]
    assert missed[-1] > 0
    assert missed[-1] - missed[-6] < 50  # of 100 iterations: it is not lost for good


def test_a_site_whose_model_diverges_ends_and_takes_nobody_with_it(tmp_path):
    files = folders(tmp_path, TWO_WAY, iterations=120, more="patience = 0.3")
    plans = {name: load(file) for name, file in files.items()}
    broken = plans["c"].problem

    def poisoned(agents, n):
        problem = broken(agents, n)
        whole = problem.gradients
        problem.gradients = lambda x, k=None: whole(x, k) * (1e200 if k is not None and k >= 30 else 1)
        return problem

    object.__setattr__(plans["c"], "problem", poisoned)
    found = together({name: lambda plan=plan: run(plan) for name, plan in plans.items()})
    assert found["c"].status == "diverged"
    for name in "ab":
        assert found[name].status == "completed"
        assert np.abs(found[name].x).max() < 10
        assert np.isfinite(found[name].metrics["loss"]).all()


def test_infinite_patience_ends_on_what_is_not_sound(tmp_path, monkeypatch):
    post = Hub.post

    def wrong(hub, place, arrays):
        post(hub, place, {"x": np.ones((1, 2))} if hub.name == "a" and place[0] == 5 else arrays)

    monkeypatch.setattr(Hub, "post", wrong)
    files = folders(tmp_path, iterations=50)
    found = train(files, forget=2.0)
    assert "what a sent for iteration 5 was not sound" in str(found["b"])
    assert all(isinstance(error, TransportError) for error in found.values())


def test_infinite_patience_says_whom_it_waits_for_in_vain(tmp_path):
    files = folders(tmp_path, iterations=5000, more="patience = inf")
    plans = {name: load(path, forget=1.0) for name, path in files.items()}
    plans["c"] = load(files["c"], forget=1.0, iterations=5000)
    ending = threading.Event()
    problem = plans["c"].problem

    def stopping(agents, n):
        found = problem(agents, n)
        whole = found.gradients

        def gradients(x, k=None):
            if k == 40:
                ending.set()
                raise D3GDError("the power fails")
            return whole(x, k)

        found.gradients = gradients
        return found

    object.__setattr__(plans["c"], "problem", stopping)
    found = together({name: lambda plan=plan: run(plan) for name, plan in plans.items()})
    assert ending.is_set()
    assert isinstance(found["a"], TransportError)
    assert "c has given no sign of life for 1 s" in str(found["a"])


def test_runs_that_are_brought_together_are_one_result(tmp_path):
    files = folders(tmp_path, iterations=40)
    found = train(files)
    whole = collected([path.parent / "run" for path in files.values()])
    assert whole.x.shape[0] == 3
    assert whole.weights.shape == (3, 3)
    assert np.allclose(whole.weights.toarray().sum(axis=1), 1)
    assert whole.labels == ("a", "b", "c")
    assert np.array_equal(whole.x[1], found["b"].x[0])
    assert np.array_equal(whole.metrics["loss_per_site"][:, 2], found["c"].metrics["loss"])
    assert whole.metrics["bytes"][-1] == sum(result.metrics["bytes"][-1] for result in found.values())
    whole.save(tmp_path / "whole")
    assert np.array_equal(Result.load(tmp_path / "whole").x, whole.x)
    with pytest.raises(D3GDError, match="the run of c is missing"):
        collected([files[name].parent / "run" for name in "ab"])
    status = read(files["a"].parent / "run")
    assert {peer["name"] for peer in status["neighbours"]} == {"b", "c"}
    assert status["iteration"] == 40


def simulated(plan, edges, conditions):
    names = sorted({name for edge in edges for name in edge})
    pairs = [(names.index(a), names.index(b)) for a, b in edges]
    problem = d3gd.problems.sigmoid_classification(agents=len(names), samples=10, features=3, test_samples=10, batch=4)
    graph = d3gd.Digraph.from_edges(len(names), pairs)
    how = {"iterations": plan.settings.iterations, "conditions": conditions(len(names), pairs)}
    return d3gd.run(plan.algorithm(), graph, problem, **how)


@pytest.mark.parametrize("algorithm", [AVERAGED, 'kind = "PerronD3GD"\nstep_size = 0.05'])
def test_with_a_finite_patience_sites_compute_what_conditions_simulate(algorithm, tmp_path, monkeypatch):
    """To the bit, with every third message along one link lost."""
    take = Conversation.take

    def losing(talk, peer, place):
        found = take(talk, peer, place)
        return None if (peer.name, talk.name) == ("a", "b") and place[0] % 3 == 1 else found

    def conditions(n, pairs):
        whole = d3gd.Digraph.from_edges(n, pairs)
        without = d3gd.Digraph.from_edges(n, [pair for pair in pairs if pair != (0, 1)])
        return d3gd.Conditions(graphs=lambda k: without if k % 3 == 1 else whole)

    monkeypatch.setattr(Conversation, "take", losing)
    files = folders(tmp_path, TWO_WAY, algorithm=algorithm, more="patience = 30")
    found, expected = train(files), simulated(load(files["a"]), TWO_WAY, conditions)
    assert found["b"].metrics["missed"][-1] == 13
    for agent, name in enumerate("abc"):
        assert np.array_equal(found[name].x[0], expected.x[agent])


class Scaled(d3gd.problems.Problem):
    """Quadratics times a factor each."""

    def __init__(self, factors):
        self._whole, self._factors = d3gd.problems.quadratic(agents=3, dim=2), np.array(factors)[:, None]
        self.agents, self.dim = 3, 2

    def gradients(self, x, k=None):
        return self._factors * self._whole.gradients(x, k)


def test_sites_are_weighed_by_their_samples(tmp_path):
    files = folders(tmp_path, algorithm='kind = "DiDGD"\nstep_size = 0.02')
    for path, samples in zip(files.values(), (1, 2, 5), strict=True):
        head, _, tail = path.read_text().partition("[problem]")
        algorithm = tail.partition("[algorithm]")[2]
        problem = '[problem]\nkind = "quadratic"\ndim = 2\n[algorithm]'
        path.write_text(f"samples = {samples}\n{head}{problem}{algorithm}")
    found = train(files)
    graph = d3gd.Digraph.from_edges(3, [(0, 1), (1, 2), (2, 0)])
    method, problem = d3gd.DiDGD(step_size=0.02), Scaled([3 / 8, 6 / 8, 15 / 8])
    expected = d3gd.run(method, graph, problem, iterations=40, metrics=["bytes"])
    for agent, name in enumerate("abc"):
        assert np.array_equal(found[name].x[0], expected.x[agent])


def test_private_sites_send_noise_that_the_seed_does_not_tell_and_write_down_what_they_spend(tmp_path):
    private = f"{AVERAGED}\n[privacy]\nclip = 1.0\nnoise = 2.0\ndelta = 1e-4"
    files = folders(tmp_path, iterations=20, algorithm=private)
    found = train(files)
    privacy = d3gd.Privacy(clip=1.0, noise=2.0, delta=1e-4)
    assert [result.status for result in found.values()] == ["completed"] * 3
    for name, result in found.items():
        assert result.metrics["epsilon"][-1] == privacy.epsilon(steps=20, sample=0.4)
        assert (files[name].parent / "privacy.json").stat().st_mode & 0o777 == 0o600
    problem = d3gd.problems.sigmoid_classification(agents=3, samples=10, features=3, test_samples=10, batch=4)
    graph = d3gd.Digraph.from_edges(3, [(0, 1), (1, 2), (2, 0)])
    averaged = d3gd.DiDGD(step_size=0.1, averaged=True)
    simulated = d3gd.run(averaged, graph, problem, iterations=20, privacy=privacy)
    trained = np.concatenate([result.x for result in found.values()])
    assert trained.shape == simulated.x.shape
    assert not np.isclose(trained, simulated.x).any()


def test_a_program_is_told_where_its_privacy_is(tmp_path):
    private = f"{AVERAGED}\n[privacy]\nclip = 1.0\nnoise = 2.0"
    files = folders(tmp_path, algorithm=private)
    with pytest.raises(SettingsError, match="PrivateGradients"), d3gd.sites.connect(files["a"]):
        pass


def test_clipping_bounds_what_a_neighbour_can_do():
    clipping, rng = Clipping(), np.random.default_rng(0)
    own, mask = np.zeros(50), np.array([True, True, True, True])
    for _ in range(20):
        rows = np.concatenate([own[None], rng.normal(size=(3, 50))])
        sound = rows.copy()
        clipping.clip("x", own, rows, mask, "oabc")
        assert np.array_equal(rows, sound)
    rows[2] = 1e6
    clipping.clip("x", own, rows, mask, "oabc")
    assert clipping.count == 1
    assert math.isclose(np.linalg.norm(rows[2]), 3 * math.sqrt(50), rel_tol=0.1)
    assert np.allclose(rows[2] / np.linalg.norm(rows[2]), 1 / math.sqrt(50))
    assert np.array_equal(rows[[1, 3]], sound[[1, 3]])


def optimized(network, steps=6, poison=None):
    import torch

    agent = int(network.agents[0])
    model, rng = torch.nn.Linear(3, 2, dtype=torch.float64), np.random.default_rng(agent)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.from_numpy(rng.normal(size=tuple(parameter.shape))))
    opt = d3gd.torch.DecentralizedOptimizer(model.parameters(), d3gd.DiDGD(step_size=0.1), network)
    inputs = torch.full((4, 3), float(agent + 1), dtype=torch.float64)
    for k in range(steps):
        opt.zero_grad()
        loss = model(inputs).square().mean()
        (loss * (float("nan") if poison == (agent, k) else 1)).backward()
        opt.step()
    return torch.cat([p.detach().ravel() for p in model.parameters()]).numpy().copy()


def test_the_optimizer_trains_between_sites_as_on_ranks(tmp_path):
    require("torch")
    import d3gd.torch as _  # noqa: F401
    from d3gd.transports.threads import on_threads

    template = 'kind = "DiDGD"\nstep_size = 0.1'
    files = folders(tmp_path, algorithm=template, iterations=6, more="patience = inf")

    def site(path):
        with d3gd.sites.connect(path) as network:
            return optimized(network)

    found = together({name: lambda path=path: site(path) for name, path in files.items()})
    graph = d3gd.Digraph.from_edges(3, [(0, 1), (1, 2), (2, 0)])
    expected = on_threads(3, lambda rank: optimized(d3gd.torch.network(graph, transport=rank, dtype="float64")))
    for agent, name in enumerate("abc"):
        assert np.array_equal(found[name], expected[agent]), name


def test_a_site_that_others_need_and_that_is_done_with_fewer_steps_is_told(tmp_path):
    require("torch")
    import d3gd.torch as _  # noqa: F401

    files = folders(tmp_path, algorithm='kind = "DiDGD"\nstep_size = 0.1', iterations=6, more="patience = inf")

    def site(name):
        with d3gd.sites.connect(files[name]) as network:
            optimized(network, steps=3 if name == "c" else 6)

    found = together({name: lambda name=name: site(name) for name in files})
    assert "c has ended at iteration 2 (completed), and with infinite patience nothing goes on" in str(found["a"])
    assert "a has ended at iteration 3 (failed)" in str(found["b"])
    assert found["c"] is None


def test_a_gradient_that_is_not_finite_stops_its_agent_before_it_reaches_another():
    require("torch")
    from d3gd.transports.threads import on_threads

    graph = d3gd.Digraph.from_edges(2, [(0, 1), (1, 0)])
    with pytest.raises(DivergedError, match="this step would make the model NaN or infinite"):
        on_threads(2, lambda rank: optimized(d3gd.torch.network(graph, transport=rank), poison=(1, 3)), timeout=1)


def test_connect_needs_a_file():
    with pytest.raises(SettingsError, match=r"no site's file; .* d3gd site run site\.toml"), d3gd.sites.connect():
        pass


SMALL = 'kind = "PerronD3GD"\nstep_size = 0.1\nrounds = 2\nevery = 2\ncompress = "int8"'


def test_local_steps_and_compressed_messages_are_those_of_a_simulation_also_resumed(tmp_path):
    files = folders(tmp_path, iterations=40, algorithm=SMALL)
    first = train(files, iterations=20)
    assert [result.status for result in first.values()] == ["completed"] * 3, first
    found = together({name: lambda path=path: run(load(path), resume=True) for name, path in files.items()})
    problem = d3gd.problems.sigmoid_classification(agents=3, samples=10, features=3, test_samples=10, batch=4)
    method = d3gd.Local(method=d3gd.PerronD3GD(step_size=0.1, rounds=2), every=2)
    small = d3gd.Compressed(method=method, compress="int8")
    expected = d3gd.run(small, d3gd.graphs.ring(3), problem, iterations=40, metrics=[])
    assert np.array_equal(np.concatenate([found[name].x for name in "abc"]), expected.x)


def test_where_receivers_may_miss_a_message_it_is_not_compressed(tmp_path):
    for more, message in [
        ("patience = 0.2", "patience = inf"),
        ('patience = inf\ntrust = "clip"', "says only what"),
    ]:
        place = tmp_path / message
        place.mkdir()
        files = folders(place, iterations=3, algorithm=SMALL, more=more)
        found = train(files)
        assert all(message in str(error) for error in found.values()), found


def test_compressed_nonsense_ends_the_site_that_hears_it(tmp_path, monkeypatch):
    post = Hub.post

    def wrong(hub, place, arrays):
        nonsense = {"m": np.full_like(arrays["m"], 255)} if "m" in arrays else arrays  # a scale of NaN
        post(hub, place, nonsense if hub.name == "a" and place[0] == 5 else arrays)

    monkeypatch.setattr(Hub, "post", wrong)
    found = train(folders(tmp_path, iterations=20, algorithm=SMALL), forget=1.0)
    assert "what a sent says that its 'm' is not finite, or absurdly large" in str(found["b"])
