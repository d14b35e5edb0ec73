"""A small experiment for each test to modify, and the command."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from d3gd.cli import call

EXPERIMENT: dict[str, Any] = {
    "iterations": 60,
    "every": 5,
    "checkpoint_every": 10,
    "graph": {"kind": "ring", "n": 5},
    "problem": {"kind": "quadratic", "dim": 3},
    "algorithm": {"kind": "D3GD", "step_size": 0.05},
}


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line that an error takes."""
        assert self.code == 2, self
        assert self.err.startswith("error: "), self.err
        assert self.err.count("\n") == 1, self.err
        return self.err.removeprefix("error: ").strip()


def toml(content: dict[str, Any]) -> str:
    def value(v: Any) -> str:
        if isinstance(v, dict):
            return "{" + ", ".join(f"{k} = {value(w)}" for k, w in v.items()) + "}"
        return str(v).lower() if isinstance(v, bool) else repr(v)

    plain = "".join(f"{k} = {value(v)}\n" for k, v in content.items() if not isinstance(v, dict))
    tables = {k: v for k, v in content.items() if isinstance(v, dict)}
    return plain + "".join(f"[{k}]\n" + "".join(f"{n} = {value(v)}\n" for n, v in t.items()) for k, t in tables.items())


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Write experiment.toml: the small experiment with changes; a changed table replaces the whole table."""
    monkeypatch.chdir(tmp_path)

    def write(**changes: Any) -> str:
        content = {key: value for key, value in {**EXPERIMENT, **changes}.items() if value is not None}
        (tmp_path / "experiment.toml").write_text(toml(content))
        return "experiment.toml"

    return write


@pytest.fixture
def d3gd(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Call a command in this process."""

    def invoke(*args: str | Path) -> Outcome:
        capfd.readouterr()
        code = call([str(arg) for arg in args])
        return Outcome(code, *capfd.readouterr())

    return invoke


def start(*args: str | Path, cwd: Path) -> subprocess.Popen[str]:
    """Start a command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "d3gd", *map(str, args)],
        cwd=cwd,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> Outcome:
    """Wait for a process, which is ended if it takes a minute."""
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate(timeout=10)
        raise AssertionError(f"the command did not end: {out} {err}") from None
    return Outcome(process.returncode, out, err)
