"""Command lines: every command with options and words that it does not expect, and numbers out of range."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.fuzz import controls
from tests.fuzz.case import REFUSED, RIGHT, Case, silent

SECONDS = 20.0

_NUMBERS = [
    "0",
    "1",
    "3",
    "-1",
    "1.5",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1e-320",
    "x",
    "",
    "0x10",
    "1_0",
    "٣",
    " 4 ",
    "true",
]
_NUMBERS += [str(2**k) for k in (31, 53, 62, 63, 64, 200)] + [
    "9" * 5000,
    "[1, 2]",
    "{}",
    '"a"',
    "\x1b[31m",
    "1\n2",
    "--",
    "-",
]
_WORDS = [
    "",
    "x",
    "ring",
    "\x1b[31m",
    "a\nb",
    "[red]",
    "é中🙂",
    "x" * 3000,
    "../..",
    "/dev/zero",
    "--help",
    "-",
    "None",
    "\udcff",
]
_GRAPHS = [
    "ring",
    "complete",
    "exponential",
    "star",
    "grid",
    "erdos_renyi",
    "random_geometric",
    "regular",
    "edges",
    "rnig",
]
_KEYS = [
    "n",
    "p",
    "rows",
    "columns",
    "torus",
    "radius",
    "spread",
    "degree",
    "seed",
    "file",
    "edges",
    "kind",
    "graph",
    "nn",
]


def prepare(home: Path) -> None:
    controls.result("plain")


def case(case: Case) -> str:
    ways: dict[Callable[[Case], str], int] = {_graph: 10, _run: 10, _plot: 2, _other: 4}
    return case.rng.choices(list(ways), list(ways.values()))[0](case)


def _odd(rng: random.Random, pool: list[str], *usual: str) -> str:
    return rng.choice(usual) if usual and rng.random() < 0.4 else rng.choice(pool)


def _tell(case: Case, words: list[str]) -> list[str]:
    case.tell(" ".join(word if len(word) < 40 else f"{word[:20]}..." for word in map(repr, words)))
    case.asks_for_much = any(word.isdecimal() and int(word[:30]) > 10_000 for word in words)
    return words


def _graph(case: Case) -> str:
    """A kind of network by its keys."""
    rng = case.rng
    words = ["graph", _odd(rng, [*_GRAPHS, *_WORDS], "ring", "grid", "erdos_renyi")]
    for key in rng.sample(_KEYS, rng.randrange(4)):
        equals = rng.random() < 0.3
        value = _odd(rng, _NUMBERS, "4", "0.5")
        words += [f"--{key}={value}"] if equals else [f"--{key}", value]
    words += rng.choice(
        [[], ["--json"], ["--weights", _odd(rng, _WORDS, "lazy", "uniform")], ["--edges", _odd(rng, _WORDS)]]
    )
    outcome = case.d3gd(*_tell(case, words))
    verdict = case.judge(_shown(outcome, words))
    if verdict == RIGHT and "--json" in words and "--help" not in words and not json.loads(outcome.out)["n"] > 0:
        silent(outcome.out)
    return verdict


def _run(case: Case) -> str:
    """Options of a run."""
    rng = case.rng
    controls.write("plain", case.folder)
    words = ["run", "experiment.toml"] if rng.random() < 0.9 else ["run", *rng.sample(_WORDS, rng.randrange(3))]
    pools = {
        "--iterations": [*_NUMBERS[:8], *_NUMBERS[9:17], "9" * 5000, "-5"],  # larger ones would merely take long
        "--seed": _NUMBERS,
        "--timeout": _NUMBERS,
        "--transport": ["alone", "auto", "mpi", "torch", "x", ""],
        "--out": ["out", "", "x" * 3000, "a\x00b", "\udcff", "a\nb"],
        "--resume": [],
        "--progress": [],
        "--no-progress": [],
        "--nonsense": _WORDS,
    }
    for option in rng.sample(list(pools), rng.randrange(1, 4)):
        words += [option, rng.choice(pools[option])] if pools[option] else [option]
    verdict = case.judge(_shown(case.d3gd(*_tell(case, words)), words))
    if verdict == RIGHT and not {"--iterations", "--seed", "--help"} & set(words):
        _require_control(words)
    return verdict


def _require_control(words: list[str]) -> None:
    """Options that do not change what is run change no result."""
    out = Path(words[words.index("--out") + 1] if "--out" in words else "runs/experiment-1")
    models = controls.Result.load(out).x
    if not np.array_equal(models, controls.result("plain").x):
        silent("another result")


def _plot(case: Case) -> str:
    """Curves of runs that are none, into files that cannot be."""
    rng = case.rng
    controls.write("plain", case.folder)
    assert case.judge(case.d3gd("run", "experiment.toml", "--out", "run")) == RIGHT
    words = ["plot", rng.choice(["run", "run", *_WORDS]), *rng.sample(_WORDS, rng.choice([0, 0, 1]))]
    words += rng.choice([[], ["--metric", _odd(rng, _WORDS, "loss", "bytes")], ["--x", _odd(rng, _WORDS, "bytes")]])
    words += ["--out", _odd(rng, [*_WORDS, "a.gif", "a.png/b.png", "run", "/dev/full"], "a.png", "a.svg")]
    return case.judge(_shown(case.d3gd(*_tell(case, words)), words))


def _other(case: Case) -> str:
    """Commands that write or compare, told nonsense; and no command at all."""
    rng = case.rng
    Path("there.toml").write_text("precious")
    words = rng.choice([
        ["init", rng.choice(["there.toml", "", ".", "new/deep.toml", "there.toml/x", "x" * 3000, "a\x00b", "\udcff"])],
        ["compare", "--steps", _odd(rng, [*_NUMBERS, "0.1,,x", ","]), "--seeds", "0"],
        ["compare", "--seeds", rng.choice(["0", "-1", "x", "nan", "9" * 30])],
        ["compare", "--methods", _odd(rng, _WORDS), "--jobs", "0"],
        ["compare", *rng.sample(_WORDS, 2)],
        ["reproduce", _odd(rng, _WORDS), "--seeds", "0"],
        [_odd(rng, _WORDS)],
        [],
        ["--debug", "--version"],
        [rng.choice(["run", "plot", "graph", "compare", "init"]), "--help"],
    ])  # fmt: skip
    verdict = case.judge(_shown(case.d3gd(*_tell(case, words)), words))
    if Path("there.toml").read_text() != "precious":
        silent("overwrote a file")
    return verdict if verdict == REFUSED else RIGHT


def _shown(outcome, words):
    """What was printed, without what the user has typed: only what files hold must not reach the terminal."""
    texts = [outcome.out, outcome.err]
    for word in sorted(filter(None, words), key=len, reverse=True):
        if not word.isprintable() or len(word) > 200:
            texts = [text.replace(word, "WORD") for text in texts]
    return outcome._replace(out=texts[0], err=texts[1])
