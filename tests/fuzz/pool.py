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
import traceback
from collections.abc import Iterable, Iterator
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.fuzz.case import CRASH, FUZZER, HANG, BrokenError, Case, captured

_START = 180.0  # seconds for imports and for what a family prepares, before the clock of a case starts
_MEMORY = 2 << 30  # bytes that a case may ask for beyond what the process had at its start
_IN_MEMORY = Path("/dev/shm")  # a file system without disks, where there is one: cases write a lot


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
    """The module of a family: ``case(case) -> str``, ``prepare(home)``, and ``SECONDS``, which a case may take."""
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
        try:
            with Runner() as runner:
                while (job := take()) is not None:
                    results.put(runner.run(*job))
        finally:
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


class Runner:
    """Runs one case after the other in a process that is started when it is needed, and again when it is lost."""

    def __init__(self) -> None:
        self._worker: _Worker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.end()

    def run(self, family: str, seed: int) -> Verdict:
        """Run a case. One without an answer gets a second chance: a busy machine may have stalled."""
        verdict = self._attempt(family, seed)
        return self._attempt(family, seed) if verdict.kind == HANG else verdict

    def _attempt(self, family: str, seed: int) -> Verdict:
        if self._worker is None or not self._worker.alive:
            self._worker = _Worker()
        return self._worker.run(family, seed)


class _Worker:
    """A process in a session of its own, so that it can be ended with all that it started."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._connection, other = context.Pipe()
        self._folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None))
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
                    kind, said = content
                    return Verdict(family, seed, kind, attack, said, time.monotonic() - began)
            kind, said = HANG, f"no answer for {limit:.0f} s"
        except (EOFError, ConnectionResetError):
            kind, said = CRASH, f"the process died: {self._last_words()}"
        self.end()
        return Verdict(family, seed, kind, attack, said, time.monotonic() - began)

    def _last_words(self) -> str:
        self._process.join(10)
        code = self._process.exitcode
        words = (self._folder / "err").read_text(errors="backslashreplace").split()
        name = signal.Signals(-code).name if code is not None and code < 0 else f"exit {code}"
        return f"{name} {' '.join(words)[-300:]}".strip()

    def end(self) -> None:
        self.alive = False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # type: ignore[arg-type]
        self._process.kill()
        self._process.join()
        self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _serve(connection: Any, folder: Path) -> None:
    """What a worker does: cases, one after the other, until nobody asks for more."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where whoever started this ignores it
    os.environ["COLUMNS"] = "200"  # tables are printed whole
    os.chdir(folder)
    captured(folder)
    prepared: set[str] = set()
    with contextlib.suppress(EOFError):
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
            verdict = _verdict(family, Case(f"{name}:{seed}", place, lambda text: connection.send(("tell", text))))
            os.chdir(folder)
            _remove(place)
            connection.send(("done", verdict))


def _verdict(family: Any, case: Case) -> tuple[str, str]:
    try:
        return family.case(case), ""
    except BrokenError as broken:
        return broken.kind, str(broken)
    except Exception:
        return FUZZER, traceback.format_exc()


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
