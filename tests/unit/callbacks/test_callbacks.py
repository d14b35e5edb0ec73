"""Callbacks: what they see, when they stop a run, and what trackers of experiments get."""

import sys

import numpy as np
import pytest

import d3gd
from d3gd.errors import D3GDError, SettingsError
from d3gd.transports.threads import on_threads

PER_AGENT = ["loss", "loss_per_agent", "disagreement"]


def run(callbacks, *, iterations=40, metrics=PER_AGENT, **options):
    graph = d3gd.graphs.erdos_renyi(5, 0.5, seed=1)
    problem = d3gd.problems.quadratic(agents=5, dim=3)
    method = d3gd.D3GD(step_size=0.05)
    return d3gd.run(method, graph, problem, iterations=iterations, metrics=metrics, callbacks=callbacks, **options)


def test_a_callback_sees_weights_metrics_and_all_records_so_far():
    seen = []
    result = run([lambda snapshot: seen.append(snapshot) and None])
    assert [s.k for s in seen] == result.iterations.tolist()
    for i, s in enumerate(seen):
        assert [k for k, _ in s.records] == result.iterations[: i + 1].tolist()
        for name, values in result.metrics.items():
            assert np.array_equal(s.metrics[name], values[i])
    assert np.array_equal(seen[-1].weights.toarray(), result.weights.toarray())
    assert seen[-1].metrics["loss_per_agent"].shape == (5,)


class Witness:
    """Notes what it is told."""

    def __init__(self):
        self.told = []

    def begin(self, settings):
        self.told.append(("begin", settings["iterations"]))

    def __call__(self, snapshot):
        self.told.append(snapshot.k)
        if snapshot.k == 20 and self.fails:
            raise RuntimeError("no")

    def end(self, result):
        self.told.append(("end", None if result is None else result.status))

    fails = False


def test_a_callback_may_know_the_beginning_and_the_end():
    witness = Witness()
    run([witness])
    assert witness.told == [("begin", 40), 0, 10, 20, 30, 40, ("end", "completed")]


def test_a_callback_is_told_that_a_run_failed():
    witness = Witness()
    witness.fails = True
    with pytest.raises(RuntimeError, match="no"):
        run([witness])
    assert witness.told[-1] == ("end", None)


def test_of_several_ranks_only_the_first_is_told_of_beginning_and_end():
    witnesses = [Witness(), Witness()]
    on_threads(2, lambda rank: run([witnesses[rank.rank]], transport=rank))
    assert witnesses[0].told == [("begin", 40), 0, 10, 20, 30, 40, ("end", "completed")]
    assert witnesses[1].told == [0, 10, 20, 30, 40]


def test_a_run_stops_once_the_best_record_is_old(tmp_path):
    values = iter([5, 4, 4.5, 3, 3.05, 3.5, 9, 9, 9])
    metrics = {"made": lambda s: next(values)}
    result = run([d3gd.callbacks.EarlyStopping("made", patience=3)], iterations=80, metrics=metrics)
    assert (result.status, result.metrics["made"].tolist()) == ("stopped", [5, 4, 4.5, 3, 3.05, 3.5, 9])


@pytest.mark.parametrize(
    ("values", "options", "records"),
    [
        ([1, 2, 3, 3, 3], {"larger": True, "patience": 2}, 5),
        ([5, 4.9, 4.8, 4.0], {"least": 0.5, "patience": 2}, 3),
        ([[1, 9], [2, 9], [0, 9]], {"patience": 2}, 3),  # the worst agent does not improve
        ([np.nan, 3, 2, 1, 0], {"patience": 2}, 5),
    ],
)
def test_what_counts_as_an_improvement(values, options, records):
    ahead = iter(values)
    stop = d3gd.callbacks.EarlyStopping("made", **options)
    result = run([stop], iterations=10 * (len(values) - 1), metrics={"made": lambda s: next(ahead)})
    assert len(result.iterations) == records


def test_a_resumed_run_stops_where_a_whole_one_does(tmp_path):
    stop = d3gd.callbacks.EarlyStopping("disagreement", patience=4)
    whole = run([stop], iterations=200)
    run([], iterations=20, out=tmp_path / "run")
    resumed = run([stop], iterations=200, out=tmp_path / "run", resume=True)
    assert whole.status == resumed.status == "stopped"
    assert whole.iterations.tolist() == resumed.iterations.tolist()


def test_a_metric_that_is_not_recorded_is_told():
    with pytest.raises(SettingsError, match="'lss', which is not recorded; choose from loss"):
        run([d3gd.callbacks.EarlyStopping("lss")])


@pytest.mark.parametrize(
    ("make", "module", "told"),
    [
        (
            lambda: d3gd.callbacks.TensorBoard("x"),
            "torch.utils.tensorboard",
            r"TensorBoard needs .*d3gd\[tensorboard\]",
        ),
        (d3gd.callbacks.MLflow, "mlflow", r"MLflow needs mlflow; install it with: pip install 'd3gd\[mlflow\]'"),
        (d3gd.callbacks.WandB, "wandb", r"WandB needs wandb; install it with: pip install 'd3gd\[wandb\]'"),
    ],
)
def test_a_tracker_that_is_not_installed_is_told_at_once(make, module, told, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(D3GDError, match=told):
        make()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_gets_every_record_also_of_a_resumed_run(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = d3gd.callbacks.TensorBoard(tmp_path / "events")
    run([board], iterations=20, out=tmp_path / "run")
    result = run([board], out=tmp_path / "run", resume=True)
    found = EventAccumulator(str(tmp_path / "events")).Reload()
    for name in ("loss", "disagreement"):
        events = found.Scalars(name)
        assert [event.step for event in events] == result.iterations.tolist()
        assert np.allclose([event.value for event in events], result.metrics[name], rtol=1e-6)
    last = found.Histograms("loss_per_agent")[-1]
    assert (last.step, last.histogram_value.num) == (40, 5)
    assert last.histogram_value.sum == pytest.approx(result.metrics["loss_per_agent"][-1].sum())
    assert found.Histograms("weights")[-1].histogram_value.num == (result.weights.nnz - 5)


@pytest.mark.filterwarnings("ignore")
def test_mlflow_gets_settings_and_every_record(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    result = run([d3gd.callbacks.MLflow(run_name="mine")])
    assert mlflow.active_run() is None
    client = mlflow.MlflowClient()
    (kept,) = client.search_runs(["0"])
    assert (kept.info.run_name, kept.info.status, kept.data.tags["d3gd.status"]) == ("mine", "FINISHED", "completed")
    assert kept.data.params["algorithm.kind"] == "D3GD"
    history = client.get_metric_history(kept.info.run_id, "loss")
    assert [(m.step, m.value) for m in history] == list(zip(result.iterations, result.metrics["loss"], strict=True))
    most = client.get_metric_history(kept.info.run_id, "loss_per_agent.most")
    assert [m.value for m in most] == result.metrics["loss_per_agent"].max(axis=1).tolist()
    with mlflow.start_run() as outer:
        run([d3gd.callbacks.MLflow()])
        assert mlflow.active_run().info.run_id == outer.info.run_id


@pytest.mark.filterwarnings("ignore")
def test_weights_and_biases_gets_every_record_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    logged = []
    real = wandb.Run.log
    monkeypatch.setattr(
        wandb.Run, "log", lambda self, data, **how: (logged.append((how["step"], data)), real(self, data, **how))[1]
    )
    result = run([d3gd.callbacks.WandB(project="tests", mode="offline", dir=str(tmp_path))])
    assert wandb.run is None
    assert [(step, data["loss"]) for step, data in logged] == list(
        zip(result.iterations, result.metrics["loss"], strict=True)
    )
    assert sum(logged[-1][1]["weights"].histogram) == result.weights.nnz - 5
    assert list(tmp_path.rglob("*.wandb"))
