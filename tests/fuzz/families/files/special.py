"""Something else, or nothing, where a file is expected."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import RIGHT, Case, silent

_SPARSE = 20 << 30  # bytes of a file that holds nothing


def special(case: Case) -> str:
    """Something else, or nothing, where a file is expected."""
    rng = case.rng
    settings = controls.write("files", case.folder)
    name = rng.choice(["links.csv", "weights.npz", "table.csv", "experiment.toml"])
    path = Path(name)
    good = path.read_bytes()
    path.unlink()
    loop = Path("loop")
    (case.folder / "kept").write_bytes(good)
    made: dict[str, Callable[[], Any]] = {
        "missing": lambda: None,
        "a folder": path.mkdir,
        "a pipe": lambda: os.mkfifo(path),
        "a socket": lambda: socket.socket(socket.AF_UNIX).bind(name),
        "a loop": lambda: (loop.symlink_to(path), path.symlink_to(loop)),
        "a broken link": lambda: path.symlink_to("nowhere"),
        "a link": lambda: path.symlink_to("kept"),
        "/dev/zero": lambda: path.symlink_to("/dev/zero"),
        "/dev/full": lambda: path.symlink_to("/dev/full"),
        "/dev/urandom": lambda: path.symlink_to("/dev/urandom"),
        "/dev/null": lambda: path.symlink_to("/dev/null"),
        "/proc/self/mem": lambda: path.symlink_to("/proc/self/mem"),
        "/dev/stdin": lambda: path.symlink_to("/dev/stdin"),
        "empty": path.touch,
        "20 GB of nothing": lambda: (path.touch(), os.truncate(path, _SPARSE)),
        "unreadable": lambda: (path.write_bytes(good), path.chmod(0)),
        "another's": lambda: (path.write_bytes(good), path.chmod(0o600)),
    }
    kind = rng.choice(list(made))
    case.tell(f"{name} is {kind}")
    made[kind]()
    if kind in ("unreadable", "another's"):
        outcome = case.start("run", settings, "--out", "run", rights=False).wait()
    else:
        outcome = case.d3gd("run", settings, "--out", "run")
    verdict = case.judge(outcome)
    if kind == "a link" and (verdict != RIGHT or not controls.same(Result.load("run"), controls.result("files"))):
        silent(f"a link to a good file is not taken like the file: {outcome.err}")
    if kind != "a link" and verdict == RIGHT:
        silent("accepted")
    return verdict
