"""One attack: what it may use, and how d3gd's answer is judged."""

import contextlib
import fcntl
import inspect
import os
import random
import re
import signal
import sys
import time
import traceback
import unicodedata
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from d3gd.cli import call
from d3gd.errors import D3GDError, PatienceWarning

REFUSED, RIGHT = "refused", "right"  # what a case returns
EQUAL, WRONG, EITHER = "equal", "wrong", "either"  # an attack that must change nothing; must be refused; may be either
TRACEBACK, UNCLEAR, CRASH, MEMORY, HANG, SILENT = "traceback", "unclear", "crash", "memory", "hang", "silent"
FUZZER = "fuzzer"  # the fuzzer itself has failed
FAILURES = (TRACEBACK, UNCLEAR, CRASH, MEMORY, HANG, SILENT)

_LONGEST = 2000  # characters that one line of an error may take
_INTERNAL = re.compile(r"this should not happen|Traceback|internal error|\b[A-Z]\w*Warning:")
_NOTES = ("nothing to resume in ", "skipped, not finished: ", "warning: ")  # lines that may precede an error
_PIPE = 1 << 20
_NOBODY = 65534


class BrokenError(Exception):
    """d3gd failed the attack; ``kind`` is one of :data:`FAILURES`."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


class Outcome(NamedTuple):
    """How a command ended, and what it printed. A negative code is a signal."""

    code: int
    out: str
    err: str


class Child:
    """A copy of this process that runs a command of its own, to be stopped, limited or deprived of rights."""

    def __init__(self, action: Callable[[], int]) -> None:
        (self._out, out), (self._err, err) = os.pipe(), os.pipe()
        for end in (out, err):
            fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, _PIPE)
        self.pid = os.fork()
        if self.pid:
            os.close(out), os.close(err)
            self._status: int | None = None
            return
        code = 70
        try:
            os.dup2(out, 1), os.dup2(err, 2)
            code = action()
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush(), sys.stderr.flush()
            os._exit(code)

    @property
    def running(self) -> bool:
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is None

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.running:
            os.kill(self.pid, number)

    def wait(self) -> Outcome:
        """Wait for it, for ever: whoever runs the case has a clock."""
        while self.running:
            time.sleep(0.002)
        texts = []
        for end in (self._out, self._err):
            with os.fdopen(end, "rb") as pipe:
                texts.append(pipe.read().decode("utf-8", "backslashreplace"))
        assert self._status is not None
        return Outcome(os.waitstatus_to_exitcode(self._status), *texts)


class Case:
    """What an attack may use: its own random numbers and its own folder, which is the current one.

    Args:
        seed: The only source of randomness.
        folder: Empty, and gone afterwards.
        tell: Takes a line that describes the attack, before it is made: the process may not survive it.
    """

    def __init__(self, seed: str, folder: Path, tell: Callable[[str], None]) -> None:
        self.seed, self.rng = seed, random.Random(seed)
        self.folder = folder
        self.tell = tell
        self.asks_for_much = False  # whether the attack asks for more memory than there is, in so many words

    def d3gd(self, *args: str | Path) -> Outcome:
        """Call a command in this process."""
        for number in (1, 2):
            os.ftruncate(number, 0)
        with warnings.catch_warnings():
            for kind in (RuntimeWarning, UserWarning, SyntaxWarning, UnicodeWarning, BytesWarning):
                warnings.simplefilter("always", kind)  # those that users see, each time
            code = call([str(arg) for arg in args])
        sys.stdout.flush(), sys.stderr.flush()
        return Outcome(code, *(_read(number) for number in (1, 2)))

    def start(self, *args: str | Path, before: Callable[[], None] = lambda: None, rights: bool = True) -> Child:
        """Call a command in a copy of this process, after ``before``; without ``rights``, as nobody in particular."""
        if not rights and os.geteuid() == 0:
            for folder in (self.folder.parent, self.folder):
                folder.chmod(0o777)  # what is closed lies deeper

        def action() -> int:
            before()
            if not rights and os.geteuid() == 0:
                os.setuid(_NOBODY)
            return call([str(arg) for arg in args])

        return Child(action)

    def judge(self, outcome: Outcome) -> str:
        """Return "refused", "right" (accepted, as far as one can tell from outside) or "interrupted"."""
        code, out, err = outcome
        lines = err.splitlines()
        said = _shown(err)
        if code < 0:
            raise BrokenError(CRASH, f"{signal.Signals(-code).name} {said}")
        if code == 1 and "error: out of memory" in err and _INTERNAL.search(err) is None:
            if self.asks_for_much:
                return REFUSED
            raise BrokenError(MEMORY, said)
        if code not in (0, 2, 3, 130, 143) or _INTERNAL.search(err):
            raise BrokenError(TRACEBACK, f"exit {code}: {said}")
        lines = [line for line in lines if not line.startswith(_NOTES)]
        if code == 2 and (len(lines) != 1 or not lines[0].startswith("error: ")):
            raise BrokenError(UNCLEAR, f"{len(lines)} lines: {said}")
        if code != 2 and any("error:" in line for line in lines):
            raise BrokenError(UNCLEAR, f"exit {code}, and yet: {said}")
        require_printable(out), require_printable(err)
        if any(len(line) > _LONGEST for line in lines):
            raise BrokenError(UNCLEAR, f"a line of {max(map(len, lines))} characters: {said}")
        return {0: RIGHT, 3: RIGHT, 2: REFUSED}.get(code, "interrupted")

    def attempt(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[str, Any]:
        """Call a function of the library; return how it ended, and its value or the error in words."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", ResourceWarning)  # an earlier case's, collected late
                warnings.simplefilter("ignore", PatienceWarning)  # words are what is wanted
                return RIGHT, function(*args, **kwargs)
        except D3GDError as error:
            text = str(error)
            for typed in filter(None, (value for value in kwargs.values() if isinstance(value, str))):
                text = text.replace(typed, "...")  # what the user has typed is no surprise
            require_printable(text)
            if len(text) > _LONGEST or len(text.splitlines()) != 1:
                raise BrokenError(UNCLEAR, f"{type(error).__name__} is no single line: {_shown(text)}") from None
            return REFUSED, error
        except MemoryError as error:
            if self.asks_for_much:
                return REFUSED, error
            raise BrokenError(MEMORY, _shown(error)) from None
        except TypeError as error:
            if not _fits(function, args, kwargs):
                return REFUSED, error  # Python itself says what is wrong with such a call
            _fail(error)
        except Exception as error:
            _fail(error)


def silent(what: str) -> NoReturn:
    """The attack changed a result, and nobody was told."""
    raise BrokenError(SILENT, what)


def require_printable(text: str) -> None:
    """Whatever is printed must not steer a terminal."""
    found = {c for c in text if unicodedata.category(c) == "Cc" and c != "\n"}
    if found:
        raise BrokenError(UNCLEAR, f"control characters {sorted(map(ord, found))} in: {_shown(text)}")


def captured(folder: Path) -> None:
    """Send what this process prints, down to its C libraries, to files that :class:`Case` reads."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_APPEND), number)


def _read(number: int) -> str:
    return os.pread(number, os.fstat(number).st_size, 0).decode("utf-8", "backslashreplace")


def _fail(error: Exception) -> NoReturn:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/d3gd/" in f.filename]
    where = f" in {'/'.join(Path(frames[-1].filename).parts[-2:])}:{frames[-1].name}" if frames else ""
    raise BrokenError(TRACEBACK, f"{type(error).__name__}{where}: {_shown(error)}") from None


def _fits(function: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _shown(text: object) -> str:
    """A text as one short printable line."""
    line = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text)).strip()
    return line if len(line) <= 400 else f"{line[:250]} ... {line[-140:]}"
