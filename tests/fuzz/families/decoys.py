"""Failures made on purpose, by seed, so that tests can see the fuzzer notice them; no part of a run."""

import os
import signal
import sys
import time
from pathlib import Path

from d3gd.cli import call
from tests.fuzz.case import RIGHT, Case, Outcome, silent

SECONDS = 1.0


def prepare(home: Path) -> None:
    call(["graph", "ring", "--n", "3"])
    call(["run", "nowhere.toml"])


def _hang(case: Case) -> str:
    time.sleep(60)
    return RIGHT


def _crash(case: Case) -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return RIGHT


def _too_much(case: Case) -> str:
    return case.attempt(bytearray, 1 << 40)[0]


def _raises(case: Case) -> str:
    return case.attempt(lambda: [][0])[0]


def _internal(case: Case) -> str:
    return case.judge(
        Outcome(1, "", "error: KeyError: 'x'; this should not happen, --debug shows where it came from\n")
    )


def _lines(case: Case) -> str:
    return case.judge(Outcome(2, "", "error: a file with\nsome of its own lines\n"))


def _steers(case: Case) -> str:
    return case.judge(Outcome(0, "\x1b[2J", ""))


def _lies(case: Case) -> str:
    return silent("another result")


def _fuzzer(case: Case) -> str:
    raise AssertionError("a mistake of the fuzzer's own")


def _refused(case: Case) -> str:
    return case.judge(case.d3gd("run", "nowhere.toml"))


def _prints(case: Case) -> str:
    sys.stdout.write("lost\n")
    return case.judge(case.d3gd("graph", "ring", "--n", "3"))


DECOYS = {
    "hang": _hang,
    "crash": _crash,
    "memory": _too_much,
    "traceback": _raises,
    "traceback of a command": _internal,
    "unclear": _lines,
    "unclear screen": _steers,
    "silent": _lies,
    "fuzzer": _fuzzer,
    "refused": _refused,
    "right": _prints,
}


def case(case: Case) -> str:
    case.tell("a decoy")
    return list(DECOYS.values())[int(case.seed.rpartition(":")[2])](case)
