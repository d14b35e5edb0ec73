"""The weights over time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd.errors import RecordError, SettingsError
from d3gd.result import Result
from d3gd.transports.threads import on_threads
from tests.helpers.folders import dying_at, same

GRAPH = d3gd.graphs.erdos_renyi(5, 0.5, seed=3)


def part(agents=None):
    return d3gd.problems.sigmoid_classification(agents=5, samples=12, features=8, test_samples=0, block=agents)


def run(problem=None, iterations=60, **options):
    usual = {"every": 5, "checkpoint_every": 10, "record_weights": True, "metrics": ["disagreement"]}
    return d3gd.run(
        d3gd.D3GD(step_size=0.1),
        GRAPH,
        part() if problem is None else problem,
        iterations=iterations,
        **usual | options,
    )


def alike(history, other):
    for name, array in vars(history).items():
        assert np.array_equal(array, getattr(other, name), equal_nan=True), name


def test_each_record_holds_the_weights_and_losses_of_its_iteration():
    seen = {}
    result = run(callbacks=[lambda s: seen.update({s.k: s})])
    history = result.history
    assert history.iterations.tolist() == list(seen) == result.iterations.tolist()
    for record, (k, snapshot) in enumerate(seen.items()):
        assert np.array_equal(history.matrix(record).toarray(), snapshot.weights.toarray()), k
        assert np.array_equal(history.losses[record], part().losses(snapshot.x)), k
    assert np.array_equal(history.matrix(-1).toarray(), result.weights.toarray())
    assert np.array_equal(history.class_proportions, part().class_proportions())
    assert len(set(history.weights[:, 1])) > 1  # D3GD moves them


def test_recording_changes_nothing_else():
    same(run(), run(record_weights=False))
    assert run(record_weights=False).history is None


@given(iterations=st.integers(0, 3000), every=st.integers(1, 7))
def test_few_records_evenly_spaced_with_the_first_and_the_last(iterations, every):
    from d3gd.engine.history import Historian
    from d3gd.metrics import Snapshot

    historian = Historian(every, GRAPH.sources.size)
    weights = d3gd.weights.metropolis(GRAPH)
    for k in [*range(0, iterations, every), iterations]:
        historian.add(Snapshot(k, np.zeros((5, 1)), weights, None, None, 0.1, 0), None)
    kept = list(historian.rows)
    assert kept[0] == 0
    assert kept[-1] == iterations
    assert len(set(np.diff(kept[:-1]))) <= 1
    assert len(kept) <= 201
    assert len(kept) >= min(100, iterations // every)


@pytest.mark.parametrize("before", [37, 40])
def test_a_resumed_run_continues_its_history(tmp_path, monkeypatch, before):
    monkeypatch.setattr("d3gd.engine.history._RECORDS", 16)  # so that thinning happens between
    whole = run(iterations=120)
    run(iterations=before, out=tmp_path / "longer")
    alike(run(iterations=120, out=tmp_path / "longer", resume=True).history, whole.history)
    with pytest.raises(RuntimeError):
        run(iterations=120, out=tmp_path / "died", callbacks=[dying_at(95)])
    result = run(iterations=120, out=tmp_path / "died", resume=True)
    alike(result.history, whole.history)
    alike(Result.load(tmp_path / "died").history, whole.history)


def test_ranks_agree_and_continue_a_history_of_any_number_of_ranks(tmp_path):
    whole = run()
    run(iterations=30, out=tmp_path)
    found = on_threads(3, lambda rank: run(part, out=tmp_path, resume=True, transport=rank))
    for each in found:
        alike(each.history, whole.history)
    alike(Result.load(tmp_path).history, whole.history)


def test_plain_tools_read_the_file(tmp_path):
    result = run(out=tmp_path)
    with np.load(tmp_path / "history.npz", allow_pickle=False) as file:
        final = np.zeros((5, 5))
        final[file["targets"], file["sources"]] = file["weights"][-1]
    assert np.array_equal(final, result.weights.toarray())


def test_a_changed_file_is_refused(tmp_path):
    run(out=tmp_path)
    content = bytearray((tmp_path / "history.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "history.npz").write_bytes(content)
    with pytest.raises(RecordError, match=r"history\.npz is damaged"):
        Result.load(tmp_path)


def test_a_run_with_a_history_is_not_resumed_without_it(tmp_path):
    run(out=tmp_path, iterations=20)
    with pytest.raises(RecordError, match="another experiment"):
        run(out=tmp_path, resume=True, record_weights=False)


def test_a_problem_without_loss_or_labels_has_weights_alone(tmp_path):
    bare = d3gd.problems.from_functions(gradient=lambda i, x: x - i, agents=5, dim=2)
    run(bare, out=tmp_path, metrics=["disagreement"])
    history = Result.load(tmp_path).history
    assert (history.losses, history.class_proportions) == (None, None)
    assert len(history) == 13


def test_a_wrong_switch_is_told():
    with pytest.raises(SettingsError, match="record_weights = 'yes': choose True or False"):
        run(record_weights="yes")
