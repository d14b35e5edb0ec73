"""On any number of ranks and any transport, iterates are bitwise equal to those of one process."""

import numpy as np
import pytest

from d3gd.algorithms import catalogue
from d3gd.transports.alone import Alone
from tests.equivalence import own_worker, worker
from tests.helpers.launching import ROOT, launch, require

TRAFFIC = int(worker.traffic(Alone())[0])
METHODS = set(catalogue.methods())
SURVEY = worker.survey(Alone())[0]


@pytest.fixture(scope="module")
def alone():
    return dict(worker.runs(None))


@pytest.mark.xdist_group("launches")
# Every method passes d3gd.check_method as well, on 2 and 3 ranks that are threads.
@pytest.mark.parametrize(("launcher", "ranks"), [("mpi", 2), ("mpi", worker.AGENTS), ("fork", 3)])
def test_every_algorithm_gives_the_same_bits(launcher, ranks, alone, tmp_path):
    require(launcher)
    out = tmp_path / "numbers.npz"
    code, _, err = launch(launcher, ranks, ROOT / "tests/equivalence/worker.py", out, cwd=tmp_path)
    assert code == 0, err
    with np.load(out) as file:
        assert file["ranks"] == ranks
        counted, moved = file["traffic"].tolist()
        assert counted == TRAFFIC
        assert moved == counted if ranks == worker.AGENTS else moved < counted
        assert len(file["survey"]) == ranks
        assert all(found.tobytes() == SURVEY.tobytes() for found in file["survey"])
        compared = [name for name in alone if f"{name}/x" in file]
        assert compared == list(alone) if ranks == 2 else {name.split()[0] for name in compared} >= METHODS
        for name in compared:
            result = alone[name]
            assert np.array_equal(file[f"{name}/x"], result.x), name
            assert np.array_equal(file[f"{name}/weights"], result.weights.data), name
            assert np.array_equal(file[f"{name}/bytes"], result.metrics["bytes"]), name
            for metric, values in result.metrics.items():
                np.testing.assert_allclose(file[f"{name}/{metric}"], values, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.xdist_group("launches")
def test_several_gradients_in_an_iteration_give_the_same_bits(tmp_path):
    require("mpi")
    out = tmp_path / "numbers.npz"
    code, _, err = launch("mpi", 2, ROOT / "tests/equivalence/own_worker.py", out, cwd=tmp_path)
    assert code == 0, err
    with np.load(out) as file:
        assert file["ranks"] == 2
        assert str(file["message"]) == own_worker.ends_badly(None)
        assert "agent 4 in Spoiled is nan at iteration 17" in str(file["message"])
        for name, result in own_worker.runs(None):
            assert np.array_equal(file[f"{name}/x"], result.x), name
            assert np.array_equal(file[f"{name}/gradients"], result.metrics["gradients"]), name


@pytest.mark.xdist_group("launches")
@pytest.mark.parametrize("apart", [False, True])
def test_processes_of_one_machine_hear_the_same_as_those_of_several(apart, tmp_path):
    require("fork")
    code, out, err = launch("fork", 3, ROOT / "tests/equivalence/sharing.py", *["apart"] * apart, cwd=tmp_path)
    assert code == 0, err
    # Lines of ranks may run into each other.
    assert out.count(f"shared {not apart}, heard True, equal True") == 3, out
