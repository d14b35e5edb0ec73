"""Processes that run cases, replaced when an attack brings them down."""

import contextlib
import os
import queue
import resource
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from tests.fuzz.case import CRASH, HANG, RIGHT, BrokenError, Case, captured

_START = 180.0  # seconds for imports and for what a family prepares, before the clock of a case starts
_MEMORY = 2 << 30  # bytes that a case may ask for beyond what the process had at its start
_FUZZER = "fuzzer"  # the kind of a failure of the fuzzer itself
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a file system in memory, where there is one: cases write a lot


class Verdict(NamedTuple):
    """How a case ended: "refused", "right" or a kind of failure."""

    family: str
    seed: int
    kind: str
    attack: str
    said: str
    seconds: float

    @property
    def name(self) -> str:
        """What ``--only`` takes to repeat it."""
        return f"{self.family}:{self.seed}"


def family_of(name: str) -> Any:
    """The module of a family: ``case(case) -> str``, ``prepare(home)`` and ``SECONDS``."""
    return import_module(f"tests.fuzz.families.{name}")


def run(jobs: Iterable[tuple[str, int]], *, processes: int = 1) -> Iterator[Verdict]:
    """Run cases, given as a family and a seed, and yield how each ended as soon as it has."""
    waiting = iter(jobs)
    lock, stop = threading.Lock(), threading.Event()
    results: queue.Queue[Verdict | None] = queue.Queue()

    def take() -> tuple[str, int] | None:
        with lock:
            return None if stop.is_set() else next(waiting, None)

    def work() -> None:
        worker = None
        try:
            while (job := take()) is not None:
                worker = worker if worker is not None and worker.alive else _Worker()
                results.put(worker.run(*job))
        finally:
            if worker is not None:
                worker.end()
            results.put(None)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(processes)]
    for thread in threads:
        thread.start()
    try:
        working = processes
        while working:
            verdict = results.get()
            if verdict is None:
                working -= 1
            else:
                yield verdict
    finally:
        stop.set()
        for thread in threads:
            thread.join()


class _Worker:
    """A process in a session of its own, so that it can be ended with all that it started."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._connection, other = context.Pipe()
        self._folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_SHARED_MEMORY if _SHARED_MEMORY.is_dir() else None))
        self._process = context.Process(target=_serve, args=(other, self._folder), daemon=True)
        self._process.start()
        other.close()
        self.alive = True

    def run(self, family: str, seed: int) -> Verdict:
        attack, limit, began = "", _START, time.monotonic()
        self._connection.send((family, seed))
        try:
            while self._connection.poll(max(0.0, began + limit - time.monotonic())):
                word, content = self._connection.recv()
                if word == "begin":
                    limit, began = content, time.monotonic()
                elif word == "tell":
                    attack = content
                else:
                    return Verdict(family, seed, *content[:1], attack, content[1], time.monotonic() - began)
            kind, said = HANG, f"no answer for {limit:.0f} s"
        except (EOFError, ConnectionResetError):
            self._process.join(10)
            code = self._process.exitcode
            name = signal.Signals(-code).name if code is not None and code < 0 else f"exit {code}"
            words = (self._folder / "err").read_text(errors="backslashreplace").split()
            kind, said = CRASH, f"the process died: {name} {' '.join(words)[-300:]}"
        self.end()
        return Verdict(family, seed, kind, attack, said, time.monotonic() - began)

    def end(self) -> None:
        self.alive = False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid or 0, signal.SIGKILL) if self._process.pid else None
        self._process.kill()
        self._process.join()
        self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _serve(connection: Any, folder: Path) -> None:
    """What a worker does: cases, one after the other."""
    os.setsid()
    os.environ["COLUMNS"] = "200"
    os.chdir(folder)
    with captured(folder):
        prepared: set[str] = set()
        while True:
            name, seed = connection.recv()
            family = family_of(name)
            if name not in prepared:
                family.prepare(folder / name)
                prepared.add(name)
                _limit_memory()
            place = folder / "case"
            place.mkdir()
            os.chdir(place)
            connection.send(("begin", family.SECONDS))
            connection.send(("done", _verdict(family, name, seed, place, lambda text: connection.send(("tell", text)))))
            os.chdir(folder)
            _remove(place)


def _verdict(family: Any, name: str, seed: int, folder: Path, tell: Any) -> tuple[str, str]:
    try:
        return family.case(Case(f"{name}:{seed}", folder, tell)), ""
    except BrokenError as broken:
        return broken.kind, str(broken)
    except Exception:
        import traceback

        return _FUZZER, traceback.format_exc()


def _limit_memory() -> None:
    """Let an absurd allocation fail here rather than take the machine down."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + _MEMORY, resource.RLIM_INFINITY))


def _remove(folder: Path) -> None:
    """Remove a folder whose rights an attack may have taken away."""
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(folder)
