"""Many runs, on this machine and on a cluster."""

import os

import numpy as np
import pytest

import d3gd
from d3gd.errors import D3GDError, SettingsError
from d3gd.runs.trials import run_all

FILE = """
iterations = 10
[graph]
kind = "ring"
n = 3
[problem]
kind = "quadratic"
dim = 2
[algorithm]
kind = "DiDGD"
step_size = 0.1
"""


def test_each_result_comes_with_its_key_and_progress_counts_what_was_there(capsys):
    found = dict(run_all({i: i for i in range(4)}, abs, jobs=1, progress=True, what="Work", done=4))
    assert found == {0: 0, 1: 1, 2: 2, 3: 3}
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "Work: 4 of 8 (50 %)"
    assert told[-1].startswith("Work: 8 of 8 (100 %)")


def process(_):
    return os.getpid()


def test_a_back_end_that_is_not_there_is_told():
    with pytest.raises(SettingsError, match="'rocket' is not available"):
        dict(run_all({0: 0}, abs, backend="rocket"))


@pytest.fixture(scope="module")
def cluster():
    """A cluster of one worker, which is another process; of a single thread, joblib would make no use."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0") as cluster:
        with distributed.Client(cluster, set_as_default=False) as client:
            (worker,) = client.run(os.getpid).values()
        yield cluster, worker


def test_a_sweep_on_a_cluster_has_the_bits_of_one_in_this_process(cluster, tmp_path, monkeypatch):
    import distributed

    (tmp_path / "small.toml").write_text(FILE)
    how = {"settings": {"algorithm.step_size": [0.05, 0.1]}, "seeds": 2}
    here = d3gd.sweep(tmp_path / "small.toml", out=tmp_path / "here", jobs=1, **how)
    monkeypatch.chdir(tmp_path)  # the worker stays where it is
    with distributed.Client(cluster[0]):
        there = d3gd.sweep("small.toml", out="there", backend="dask", **how)
    assert [row.final for row in there.rows] == [row.final for row in here.rows]
    for one, other in zip(here.rows, there.rows, strict=True):
        assert np.array_equal(here.result(one).x, there.result(other).x)


def test_without_a_client_runs_go_to_the_configured_address(cluster):
    import dask

    with dask.config.set({"scheduler-address": cluster[0].scheduler_address}):
        assert dict(run_all({0: 0}, process, backend="dask")) == {0: cluster[1]}


def test_a_cluster_that_does_not_answer_is_told():
    pytest.importorskip("distributed")
    import dask

    settings = {"scheduler-address": "tcp://127.0.0.1:1", "distributed.comm.timeouts.connect": "1s"}
    with (
        dask.config.set(settings),
        pytest.raises(D3GDError, match=r"no dask scheduler answers at 'tcp://127\.0\.0\.1:1'"),
    ):
        dict(run_all({0: 0}, process, backend="dask"))
