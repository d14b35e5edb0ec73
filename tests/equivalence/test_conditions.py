"""Under conditions too, any number of ranks gives the iterates of one process and resumes messages in flight."""

import numpy as np
import pytest

from d3gd.result import Result
from tests.equivalence import troubled
from tests.helpers.launching import ROOT, launch, require


@pytest.mark.xdist_group("launches")
def test_ranks_agree_to_the_bit_and_go_on_with_each_others_mail(tmp_path):
    require("mpi")
    for ranks, iterations in ((3, 23), (2, 46)):
        words = [ROOT / "tests/equivalence/troubled.py", tmp_path / "ranks", iterations]
        code, _, err = launch("mpi", ranks, *words, cwd=tmp_path)
        assert code == 0, err
    for name, result in troubled.runs(tmp_path / "alone", 46):
        other = Result.load(tmp_path / "ranks" / name.replace(",", ""))
        assert np.array_equal(other.x, result.x), name
        assert np.array_equal(other.weights.data, result.weights.data), name
        assert np.array_equal(other.metrics["bytes"], result.metrics["bytes"]), name
