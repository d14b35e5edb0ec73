"""Ranks started by hand, which nobody ends: each says what is wrong, and none blames a healthy one."""

import os
import subprocess
import sys

import pytest

from tests.helpers.launching import ROOT, require
from tests.helpers.ports import ports

pytestmark = pytest.mark.xdist_group("launches")


def started(who, ranks=(0, 1, 2)):
    """Start ranks without a launcher, and return what each printed as its error."""
    require("torch")
    (port,) = ports(1)
    own = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "3", "OMP_NUM_THREADS": "1"}
    own |= {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, str(ROOT / "tests/equivalence/blamed.py"), str(who)]
    processes = {
        rank: subprocess.Popen(
            words,
            env={**os.environ, **own, "RANK": str(rank)},
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in ranks
    }
    try:
        texts = {rank: process.communicate(timeout=60)[1] for rank, process in processes.items()}
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    assert all(process.returncode != 0 for process in processes.values())
    return {rank: [line for line in text.splitlines() if "rror: " in line] for rank, text in texts.items()}


def test_a_killed_rank_0_is_blamed_and_nobody_else():
    told = started(0)
    lines = [line for lines in told.values() for line in lines]
    assert lines
    assert all("the connection to rank 0 broke" in line for line in lines), told
    assert not any("--timeout" in line or "resume" in line for line in lines)
