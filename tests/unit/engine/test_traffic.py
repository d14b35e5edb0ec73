"""What each link carried: with the run's bytes as its sum, the same on any number of ranks and after a resume."""

from dataclasses import replace

import numpy as np
import pytest

import d3gd
from d3gd.conditions.network import ConditionedNetwork
from d3gd.network import Network
from d3gd.result import Result
from d3gd.transports.threads import on_threads
from tests.helpers.folders import dying_at

PATH = d3gd.graphs.grid(1, 6)
GRAPH = d3gd.graphs.grid(2, 3)
CONDITIONS = d3gd.Conditions(loss=0.2, links=0.6, pause=0.1, back=0.3, biased=True)
CASES = {
    "equal links": (d3gd.DiDGD(step_size=0.1), {}),
    "no links": (d3gd.Centralized(step_size=0.1), {}),
    "pruned links": (d3gd.ACGT(step_size=0.1), {}),
    "survey": (d3gd.PerronD3GD(step_size=0.1), {}),
    "plans": (d3gd.PerronD3GD(step_size=0.1, rule="planned"), {}),
    "three arrays": (d3gd.D3GD(step_size=0.1), {}),
    "compressed": (d3gd.Compressed(method=d3gd.PerronD3GD(step_size=0.1), compress="topk:0.5"), {}),
    "every third": (d3gd.Local(method=d3gd.PerronD3GD(step_size=0.1), every=3), {}),
    "conditions": (d3gd.DiDGD(step_size=0.1), {"conditions": CONDITIONS}),
    "delay": (d3gd.DiDGD(step_size=0.1), {"conditions": replace(CONDITIONS, delay=2)}),
}


def part(agents=None):
    return d3gd.problems.quadratic(agents=6, dim=4, block=agents)


def run(case, problem=None, **options):
    algorithm, rest = CASES[case]
    usual = {"iterations": 30, "every": 5, "checkpoint_every": 10, "record_weights": True}
    return d3gd.run(algorithm, GRAPH, part() if problem is None else problem, **usual | rest | options)


def alike(one, other):
    assert np.array_equal(one.traffic.toarray(), other.traffic.toarray())
    assert np.array_equal(one.history.bytes, other.history.bytes)


@pytest.mark.parametrize("case", CASES)
def test_the_sum_over_links_is_the_bytes_of_the_run(case):
    result = run(case)
    assert result.history.bytes.sum(axis=1).tolist() == result.metrics["bytes"].tolist()
    assert result.traffic.sum() == result.metrics["bytes"][-1]
    assert result.traffic.data.tolist() == result.history.bytes[-1].tolist()
    assert np.array_equal(result.traffic.indices, result.weights.indices)
    assert not result.traffic.diagonal().any()  # an agent sends itself nothing
    assert (np.diff(result.history.bytes, axis=0) >= 0).all()
    same = {"equal links", "no links", "three arrays"}
    assert (len(set(result.traffic.data[GRAPH.sources != GRAPH.targets])) == 1) == (case in same)


def test_only_the_links_in_use_carry_a_message():
    net, rows = Network(PATH, d3gd.weights.metropolis(PATH)), np.zeros((6, 5))
    used = net.draw_links(0) < 0.5
    net.exchange(x=rows)
    net.exchange(over=used, x=rows, y=np.zeros(6))
    assert net.traffic.per_edge(net.loops).tolist() == np.where(net.loops, 0, 40 + 48 * used).tolist()


def test_a_survey_costs_what_the_agent_that_is_heard_had_to_tell():
    """Along a path, an agent sends every row once: its own with two or three entries, and those of all others."""
    net = Network(PATH, d3gd.weights.metropolis(PATH), needs="in-neighbours")
    net.survey()
    rows = [2 * len(PATH.sources[PATH.targets == i]) + 1 for i in range(6)]
    told = {i: sum(rows) for i in range(6)}
    told[0] -= rows[5]  # which reach an end of the path in the last round, when all is known
    told[5] -= rows[0]
    expected = [0 if j == i else 8 * told[j] for j, i in zip(PATH.sources, PATH.targets, strict=True)]
    assert net.traffic.per_edge(net.loops).tolist() == expected


def test_links_that_are_not_there_carry_nothing():
    """Two halves of the network in turn, of which the second has three of five iterations."""
    halves = [d3gd.Digraph.from_edges(6, pairs) for pairs in ([(0, 1), (1, 2)], [(3, 4), (4, 5)])]
    net = ConditionedNetwork(PATH, d3gd.weights.metropolis(PATH), d3gd.Conditions(graphs=lambda k: halves[k % 5 > 1]))
    for k in range(5):
        net.open(k, net.close())
        net.exchange(x=np.zeros((6, 1)))
    found = PATH.matrix(net.traffic.per_edge(net.loops)).toarray()
    expected = np.zeros((6, 6))
    for j, i, times in ((0, 1, 2), (1, 2, 2), (3, 4, 3), (4, 5, 3)):
        expected[i, j] = 8 * times
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("case", ["pruned links", "survey", "plans", "compressed", "delay"])
def test_ranks_agree_and_resume_each_other(tmp_path, case):
    whole = run(case)
    run(case, iterations=20, out=tmp_path)
    for ranks in (1, 3):
        for each in on_threads(ranks, lambda rank: run(case, part, transport=rank)):
            alike(each, whole)
    for each in on_threads(3, lambda rank: run(case, part, out=tmp_path, resume=True, transport=rank)):
        alike(each, whole)
    alike(Result.load(tmp_path), whole)


def test_a_run_that_died_goes_on_counting(tmp_path):
    with pytest.raises(RuntimeError):
        run("conditions", out=tmp_path, callbacks=[dying_at(25)])
    alike(run("conditions", out=tmp_path, resume=True), run("conditions"))


def test_plain_tools_read_the_file(tmp_path):
    from scipy.sparse import load_npz

    result = run("pruned links", out=tmp_path)
    assert np.array_equal(load_npz(tmp_path / "traffic.npz").toarray(), result.traffic.toarray())
    with np.load(tmp_path / "history.npz", allow_pickle=False) as file:
        assert np.array_equal(file["bytes"], result.history.bytes)


def test_folders_without_the_traffic_open_and_resume(tmp_path, monkeypatch):
    """Those that an older version wrote: the bytes of all links are known, those of each are not."""
    result = run("survey")
    replace(result, traffic=None, history=replace(result.history, bytes=None)).save(tmp_path / "finished")
    found = Result.load(tmp_path / "finished")
    assert (found.traffic, found.history.bytes) == (None, None)
    with monkeypatch.context() as older:
        from d3gd.engine.history import Historian

        arrays = Historian.arrays
        older.setattr("d3gd.engine.setup.Setup.traffic", lambda run, sent: None)
        older.setattr(Historian, "arrays", lambda self: {k: v for k, v in arrays(self).items() if k != "bytes"})
        older.setattr(Historian, "history", lambda *given: None)
        run("survey", iterations=20, out=tmp_path / "begun")
    for ranks in (3, 1):
        (resumed, *_) = on_threads(
            ranks,
            lambda rank, more=40 - ranks: run(
                "survey", part, iterations=more, out=tmp_path / "begun", resume=True, transport=rank
            ),
        )
        assert (resumed.traffic, resumed.history.bytes) == (None, None)
        known = run("survey", iterations=40 - ranks)
        assert resumed.metrics["bytes"].tolist() == known.metrics["bytes"].tolist()
        assert np.array_equal(resumed.history.weights, known.history.weights)
