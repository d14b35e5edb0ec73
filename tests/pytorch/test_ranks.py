"""One agent per process gives the iterates of all agents in one process."""

import numpy as np
import pytest

import d3gd
from tests.helpers.launching import ROOT, launch
from tests.pytorch import worker

# Stacks of different sizes add up in different orders: relative to a model's size, after 14 steps.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}


pytestmark = pytest.mark.xdist_group("launches")


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    script = ROOT / "tests/pytorch/worker.py"
    code, out, err = launch("fork", worker.AGENTS, script, folder / "numbers.npz", cwd=folder)
    assert code == 0, out + err
    with np.load(folder / "numbers.npz") as file:
        return dict(file)


@pytest.mark.parametrize(("name", "local", "dtype"), worker.CASES)
def test_the_optimizer_follows_the_stacked_run(name, local, dtype, numbers):
    case = worker.called(name, local, dtype)
    problem = worker.problem(worker.DTYPES[dtype])
    seen = []
    result = d3gd.run(
        worker.stacked(name, local),
        worker.graph(),
        problem,
        iterations=worker.STEPS,
        dtype=dtype,
        every=1,
        metrics=["bytes"],
        callbacks=[lambda s: seen.append(s.x.copy())],
    )
    expected = np.stack(seen, axis=1)
    assert problem.stacked
    moved = np.abs(expected[:, -1] - expected[:, 0]).max()
    assert moved > 0.01  # or else agreement would mean little
    scale = np.abs(expected).max()
    np.testing.assert_allclose(numbers[case], expected, rtol=0, atol=TOLERANCE[dtype] * scale)
    assert numbers[f"{case} bytes"].sum() == result.metrics["bytes"][-1]


@pytest.mark.parametrize(("name", "local", "dtype"), worker.CASES)
def test_a_loaded_state_goes_on_to_the_bit(name, local, dtype, numbers):
    case = worker.called(name, local, dtype)
    assert np.array_equal(numbers[f"{case} again"], numbers[case][:, worker.SAVED :])
    assert np.array_equal(numbers[f"{case} again bytes"], numbers[f"{case} bytes"])


def test_buffers_are_mixed_with_the_weights_in_use_and_only_when_asked(numbers):
    before, after = numbers["buffers before"], numbers["buffers after"]
    assert np.abs(before - before[0]).max() > 1e-3  # each has its own statistics until then
    A = worker.graph().matrix(numbers["weights"]).toarray()
    np.testing.assert_allclose(after, A @ before, rtol=1e-5)


def test_the_engine_on_ranks_follows_the_stacked_run(numbers):
    alone = worker.run()
    np.testing.assert_allclose(numbers["run x"], alone.x, rtol=0, atol=1e-12 * np.abs(alone.x).max())
    for name, values in alone.metrics.items():
        np.testing.assert_allclose(numbers[f"run {name}"], values, rtol=1e-9, atol=1e-12, err_msg=name)
