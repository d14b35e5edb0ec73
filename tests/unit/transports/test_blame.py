"""Failures name the right culprit."""

import threading
import time

import numpy as np
import pytest

from d3gd.errors import D3GDError, TransportError
from d3gd.transports import base, connect
from d3gd.transports.threads import on_threads
from tests.helpers.launching import require
from tests.helpers.ports import ports


def around(rank, k):
    """Pass a number around a ring of ranks."""
    into = np.zeros(1)
    rank.swap({(rank.rank + 1) % rank.ranks: np.array([float(k)])}, {(rank.rank - 1) % rank.ranks: into}, "round")


def test_a_sleeper_blames_itself_and_others_blame_it():
    told = {}

    def work(rank):
        try:
            for k in range(6):
                if rank.rank == 2 and k == 3:
                    time.sleep(1.2)
                around(rank, k)
        except TransportError as error:
            told[rank.rank] = str(error)

    on_threads(3, work, timeout=0.4)
    assert "this rank sent nothing for 1 s, longer than the 0.4 s that others wait" in told[2]
    assert told[0].startswith("no message from rank 2 for 0.4")
    assert "connect(timeout=...)" in told[0]
    assert not any("--timeout" in text or "resume" in text for text in told.values())


class Broken(base.Transport):
    """Rank 1, to whom the connection of rank 0 breaks; others answer or are busy."""

    timeout, rank, resumes = 20.0, 1, "--resume goes on"

    def __init__(self, ranks, answers):
        self.ranks, self.answers = ranks, answers

    def _start(self, sends, receives, tag):
        def finish():
            raise base.LateError(0, broken=True)

        return finish

    def _answers(self, text, grace):
        return dict.fromkeys(self.answers, text)

    def abort(self, code):
        raise AssertionError


def broken(*who):
    with pytest.raises(TransportError) as error:
        Broken(*who).swap({}, {0: np.zeros(1)}, "round")
    return str(error.value)


def test_the_time_that_was_waited_is_told_not_the_limit():
    told = broken(2, [])
    assert "the connection to rank 0 broke" in told
    assert "--resume goes on" in told
    assert "20" not in told


def test_a_rank_that_is_only_busy_is_not_blamed():
    assert "the connection to rank 0 broke" in broken(4, [2])  # rank 3 computes
    assert "the connection to rank 3 broke" in broken(4, [0, 2])  # rank 0 still answers, and left because of rank 3


def test_versions_are_compared(monkeypatch):
    own = threading.local()
    monkeypatch.setattr(base, "versions", lambda: {"d3gd": "1", "numpy": own.version})

    def work(rank):
        own.version = "2.4" if rank.rank < 2 else "2.3"
        try:
            rank.require_same_versions()
        except D3GDError as error:
            return str(error)
        return ""

    told = on_threads(3, work)
    assert all("rank 2 has numpy 2.3 and rank 0 has 2.4; install the same everywhere" in text for text in told)


def test_a_rank_that_meets_nobody_says_where_and_for_how_long(monkeypatch):
    require("torch")
    from datetime import timedelta

    from d3gd.transports import torch_dist

    (port,) = ports(1)
    for name, value in {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": 1, "WORLD_SIZE": 2}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr(torch_dist, "_SLACK", timedelta(seconds=0.1))
    with pytest.raises(TransportError) as error:
        connect("torch", timeout=0.2)
    assert f"rank 1 met nobody at 127.0.0.1:{port} within 0.2 s" in str(error.value)
    assert "torchrun" not in str(error.value)
    monkeypatch.delenv("RANK")
    with pytest.raises(TransportError, match="RANK is not set; start it with torchrun"):
        connect("torch", timeout=0.2)
