"""Settings files: values of all kinds in all places, and text that is hardly TOML."""

import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import EITHER, EQUAL, RIGHT, WRONG, Case, silent

SECONDS = 20.0

_DEEP, _DIGITS = 2000, 5000

# Values as raw TOML. No count between a hundred and 2^40: such a run is merely long.
_COUNTS = ["0", "1", "2", "7", "0x10", "0b11", "1_0", "-0", "+3"]
_HUGE = [str(2**k + d) for k in (40, 53, 62, 63, 64, 100) for d in (-1, 0, 1)] + ["9" * 400]
_NEGATIVE = ["-1", "-2", str(-(2**31)), str(-(2**63)), str(-(2**63) - 1)]
_NUMBERS = ["0.0", "-0.0", "1e-320", "5e-324", "1e-30", "0.3", "0.999999999", "1.0", "1.5", "1e8", "1e154", "1e308"]
_NO_NUMBERS = ["nan", "-nan", "inf", "-inf", "+inf", "1e400", "-1e400"]
_NO_SCALARS = ["[]", "[[]]", "[1, 2]", '["a"]', "{}", "{a = 1}", "[{a = [1]}]"]
_DATES = ["1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "1979-05-27T00:32:00.999999-07:00"]
_WORDS = ['""', '"ring"', '"D3GD"', "'x'", '"\\u0000"', '"\\u001b[31mred\\u001b[0m"', '"\\r\\n"', '"\\u202e"']
_WORDS += [
    '"é中🙂"',
    f'"{"a" * 3000}"',
    '"[red]"',
    '"../.."',
    '"/dev/zero"',
    '"/"',
    '"."',
    '"\\u0007"',
    '"{0}"',
    '"%s"',
]
_TEXTS_AS_NUMBERS = ['"1"', '"0.1"', '"nan"']

_COUNTED = {"n", "rows", "columns", "dim", "classes", "features", "samples", "test_samples", "batch", "delay", "every"}
_COUNTED |= {"seed", "checkpoint_every", "iterations"}
_SIZES = {"n", "rows", "columns", "dim", "classes", "features", "samples", "test_samples", "batch"}


def prepare(home: Path) -> None:
    for name in controls.EXPERIMENTS:
        controls.result(name)


def case(case: Case) -> str:
    rng = case.rng
    name = rng.choice(list(controls.EXPERIMENTS))
    controls.write_inputs(case.folder)
    content = controls.experiment(name)
    if rng.random() < 0.65:
        expected, text = _value_changed(case, name, content)
    elif rng.random() < 0.5:
        expected, text = _structure_changed(case, name, content)
    else:
        expected, text = _text_changed(case, name, content)
    Path("experiment.toml").write_bytes(text)
    if rng.random() < 0.12:
        return _looked_at(case)
    outcome = case.d3gd("run", "experiment.toml", "--out", "run")
    verdict = case.judge(outcome)
    if verdict != RIGHT:
        if expected == EQUAL:
            silent(f"refused although nothing is wrong: {outcome.err}")
        return verdict
    if expected == WRONG:
        silent(f"accepted: {outcome.out.splitlines()[0]}")
    result = Result.load("run")
    if expected == EQUAL and not controls.same(result, controls.result(name)):
        silent("the same experiment in other words has another result")
    _require_sense(case, result)
    return RIGHT


def _looked_at(case: Case) -> str:
    """Describe its network, which takes other ways through the code than a run."""
    json = case.rng.choice([[], ["--json"]])
    weights = case.rng.choice([[], [], ["--weights", case.rng.choice(["lazy", "uniform", "lasy", ""])]])
    return case.judge(case.d3gd("graph", "experiment.toml", *json, *weights))


def _require_sense(case: Case, result: Result) -> None:
    """What holds for every run that was accepted, whatever its settings."""
    if result.status != "diverged" and not np.isfinite(result.x).all():
        silent(f"{result.status}, but its models are not finite")
    last = int(result.iterations[-1])
    if last > 0 and not result.x.any() and result.metrics.get("stationarity", np.ones(1))[0] > 0:
        step = result.settings["algorithm"]["step_size"]
        if not isinstance(step, float) or step > 1e-300:
            silent(f"{result.status} after {last} iterations that changed nothing")
    again = case.judge(case.d3gd("run", "run/experiment.toml", "--out", "again"))
    if again != RIGHT or not controls.same(result, Result.load("again")):
        silent(f"the folder's copy of the experiment does not repeat it ({again})")


def _value_changed(case: Case, name: str, content: dict[str, Any]) -> tuple[str, bytes]:
    """Put other values in place of one or two."""
    rng = case.rng
    places = [((), key) for key, value in content.items() if not isinstance(value, dict)]
    for table, values in content.items():
        if isinstance(values, dict):
            places += [((table,), key) for key in values]
            places += [((table, key), inner) for key, v in values.items() if isinstance(v, dict) for inner in v]
    raw: dict[str, str] = {}
    told, expected = [], EITHER
    for path, key in rng.sample(places, 1 if rng.random() < 0.8 else 2):
        table = content
        for part in path:
            table = table[part]
        kind, text = _other_value(rng, key, table[key])
        if path == ("target",) and ("inf" in text or "1e400" in text):
            kind = EITHER  # a level that is reached at once, or never
        expected = WRONG if WRONG in (kind, expected) else EITHER
        if key in _SIZES and text in _HUGE:
            case.asks_for_much = True
        if key == "iterations" and text in _HUGE:
            content["target"] = {"disagreement": 1e9}  # so that it ends at the first record
        mark = f"@{len(raw)}@"
        raw[f'"{mark}"'] = text
        table[key] = mark
        told.append(f"{name}: {'.'.join((*path, key))} = {text[:60]}")
    case.tell("; ".join(told))
    written = controls.toml(content)
    for mark, text in raw.items():
        written = written.replace(mark, text)
    return expected, written.encode()


def _other_value(rng: random.Random, key: str, old: Any) -> tuple[str, str]:
    """Another value for a key, and what is to become of it."""
    pools: list[tuple[str, list[str]]]
    if isinstance(old, bool):
        pools = [(WRONG, _COUNTS[:3] + _NO_NUMBERS + _WORDS + _NO_SCALARS + _DATES + ['"true"', "1"])]
    elif key in _COUNTED:
        wrong = [*_NEGATIVE, *_NO_NUMBERS, *_WORDS, *_NO_SCALARS, *_DATES, *_TEXTS_AS_NUMBERS, "true", "1.5", "1e2"]
        pools = [(EITHER, _COUNTS), (EITHER, _HUGE), (WRONG, wrong)]
    elif isinstance(old, (int, float)):
        scalars = [value for value in _NO_SCALARS if key != "alpha"]
        wrong = [*_NO_NUMBERS, *_WORDS, *scalars, *_DATES, *_TEXTS_AS_NUMBERS, "true"]
        pools = [(EITHER, _NUMBERS), (EITHER, _COUNTS + _HUGE + _NEGATIVE), (WRONG, wrong)]
    elif isinstance(old, str):
        pools = [(EITHER, _WORDS), (WRONG, _COUNTS + _NO_NUMBERS + _NO_SCALARS + _DATES + ["true"])]
    elif isinstance(old, list):
        pools = [(EITHER, ["[]", '["loss"]', '["loss", "loss"]']), (WRONG, [*_COUNTS, *_NO_NUMBERS, '["iteration"]'])]
        pools += [(WRONG, [*_DATES, "{}", "[1]", '["\\u001b[2J"]', "true", '["loss", 1]'])]
    else:
        pools = [(WRONG, _NO_NUMBERS + _WORDS + _DATES + ["[]", "{}", "{start = nan}", "{start = 0.1, stop = 1}"])]
        pools += [(EITHER, ["{start = 1e-320, power = 1e300}", "{start = 0.1, power = 400, over = 1e-300}", "0.1"])]
    expected, pool = rng.choice(pools)
    text = rng.choice(pool if key != "file" else [text for text in pool if len(text) < 2000])  # paths are shown whole
    return expected, text


def _structure_changed(case: Case, name: str, content: dict[str, Any]) -> tuple[str, bytes]:
    """Keys and tables that are too many, missing, twice there or out of place."""
    rng = case.rng
    tables = [key for key, value in content.items() if isinstance(value, dict)]
    table = rng.choice(tables)
    text = controls.toml(content)
    deep = rng.choice([10, 100, _DEEP, 10 * _DEEP])
    empty = EITHER if table in ("conditions", "target") else WRONG
    stranger = rng.choice(["nn", "n.n", '"a b"', '"\\u001b[1m"', "ïn", '""', '"' + "k" * 3000 + '"'])
    changes: list[tuple[str, str, Callable[[], str]]] = [
        (WRONG, f"an unknown key {stranger} in [{table}]", lambda: _first_in(text, table, f"{stranger} = 1")),
        (WRONG, f"an unknown key {stranger} outside", lambda: f"{stranger} = 1\n{text}"),
        (WRONG, f"an unknown table [{stranger}]", lambda: f"{text}[{stranger}]\na = 1\n"),
        (WRONG, f"[{table}] twice", lambda: f"{text}[{table}]\n"),
        (WRONG, "iterations twice", lambda: f"iterations = 3\n{text}"),
        (WRONG, f"[[{table}]]", lambda: text.replace(f"[{table}]", f"[[{table}]]")),
        (WRONG, f"{table} = 1", lambda: f"{table} = 1\n" + _without(content, table)),
        (WRONG, f"{table} = []", lambda: f"{table} = []\n" + _without(content, table)),
        (empty, f"empty [{table}]", lambda: f"{_without(content, table)}[{table}]\n"),
        (EITHER, f"no [{table}]", lambda: _without(content, table)),
        (WRONG, "no iterations", lambda: _without(content, "iterations")),
        (WRONG, f"arrays nested {deep} deep", lambda: f"deep = {'[' * deep}{']' * deep}\n{text}"),
        (WRONG, f"tables nested {deep} deep", lambda: f"deep = {'{a = ' * deep}1{'}' * deep}\n{text}"),
        (WRONG, f"a dotted key {deep} deep", lambda: f"{'a.' * deep}a = 1\n{text}"),
        (WRONG, f"a dotted header {deep} deep", lambda: f"{text}[{'a.' * deep}a]\n"),
        (WRONG, f"edges nested {deep} deep", lambda: _nested_edges(content, deep)),
        (WRONG, f"a seed of {_DIGITS} digits", lambda: f"seed = {'9' * _DIGITS}\n" + _without(content, "seed")),
        (EITHER, "edges in the file", lambda: _with_edges(rng, content)),
    ]  # fmt: skip
    expected, told, made = rng.choice(changes)
    case.tell(f"{name}: {told[:80]}")
    return expected, made().encode()


def _first_in(text: str, table: str, line: str) -> str:
    return text.replace(f"[{table}]", f"[{table}]\n{line}")


def _without(content: dict[str, Any], key: str) -> str:
    return controls.toml({name: value for name, value in content.items() if name != key})


def _nested_edges(content: dict[str, Any], deep: int) -> str:
    graph = f'[graph]\nkind = "edges"\nedges = {"[" * deep}0, 1{"]" * deep}\n'
    return _without(content, "graph") + graph


def _with_edges(rng: random.Random, content: dict[str, Any]) -> str:
    odd = ["-1", "2.0", "1e3", "true", '"a"', "nan", str(2**31), str(2**62), str(2**63), "9" * 30]
    number = [*"0123", *odd]
    pairs = [
        f"[{', '.join(rng.choice(number) for _ in range(rng.choice([0, 1, 2, 2, 2, 3])))}]"
        for _ in range(rng.randrange(8))
    ]
    size = rng.choice(["", "", "n = 4\n", f"n = {2**62}\n", "n = 0\n"])
    return _without(content, "graph") + f'[graph]\nkind = "edges"\n{size}edges = [{", ".join(pairs)}]\n'


def _text_changed(case: Case, name: str, content: dict[str, Any]) -> tuple[str, bytes]:
    """The file as text and bytes: what must not matter, and what is no TOML any more."""
    rng = case.rng
    text = controls.toml(content)
    data = text.encode()
    place = rng.randrange(len(data))
    bit = 1 << rng.randrange(8)
    stray = rng.choice(
        [b"\x00", b"\x1b[31m", b"\xff", b"\xc3", b"\r", b"\x7f", b"\xed\xa0\x80", b"[", b"=", b"#", b'"']
    )
    flipped = bytearray(data)
    flipped[place] ^= bit
    lines = text.splitlines()
    plain, tables = text.split("\n\n", 1)
    shuffled = plain.splitlines()
    rng.shuffle(shuffled)
    blocks = tables.split("\n\n")
    rng.shuffle(blocks)
    changes: list[tuple[str, str, bytes]] = [
        (EQUAL, "CRLF", data.replace(b"\n", b"\r\n")),
        (EQUAL, "comments", "\n".join(f"{line}   # é" for line in lines).encode()),
        (EQUAL, "spaces", "\n".join(line.replace(" = ", " \t=   ") for line in lines).encode()),
        (EQUAL, "another order", ("\n".join(shuffled) + "\n\n" + "\n\n".join(blocks)).encode()),
        (EQUAL, "literal strings", text.replace('"', "'").encode()),
        (EQUAL, "no last line end", data.rstrip()),
        (EQUAL, "exponents", text.replace("0.05", "5e-2").replace("0.1\n", "1E-1\n").encode()),
        (EQUAL, "escapes", text.replace('"ring"', '"\\u0072ing"').encode()),
        (EQUAL, "inline tables", _inlined(content).encode()),
        (EITHER, "BOM", b"\xef\xbb\xbf" + data),
        (EITHER, "UTF-16", text.encode("utf-16")),
        (EITHER, "Latin-1", b"# \xe9\n" + data),
        (EITHER, "a megabyte of comments", b"# " + b"x" * (1 << 20) + b"\n" + data),
        (EITHER, "CR alone", data.replace(b"\n", b"\r")),
        (EITHER, "empty", b""),
        (EITHER, "one line end", b"\n"),
        (EITHER, f"cut at {place}", data[:place]),
        (EITHER, f"bit {bit} of byte {place}", bytes(flipped)),
        (EITHER, f"{stray!r} at {place}", data[:place] + stray + data[place:]),
        (EITHER, "random bytes", rng.randbytes(rng.randrange(1, 300))),
    ]
    weights = [1] * 16 + [10, 20, 12, 2]
    expected, told, made = rng.choices(changes, weights)[0]
    case.tell(f"{name}: {told}")
    if expected == EITHER:
        _shorten(case, made)
    return expected, made


def _inlined(content: dict[str, Any]) -> str:
    return "".join(f"{key} = {controls.value_text(value)}\n" for key, value in content.items())


def _shorten(case: Case, data: bytes) -> None:
    """A changed digit may ask for a great deal, honestly: such a case is worth no time."""
    try:
        found = tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        return
    numbers = [found.get("iterations", 0)]
    numbers += [v for t in found.values() if isinstance(t, dict) for k, v in t.items() if k in _SIZES]
    if any(isinstance(number, int) and number > 2000 for number in numbers):
        case.asks_for_much = True
