"""Tables of links, compared with what another reader makes of them."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import REFUSED, RIGHT, Case, silent
from tests.fuzz.families.files.damage import ESCAPE, damaged, plain_number, put


def links(case: Case) -> str:
    """A table of links: as text with one thing wrong, or damaged anywhere."""
    rng = case.rng
    if rng.random() < 0.4:
        data, told = damaged(case, rng.choice([controls.LINKS, controls.NAMED_LINKS]).encode())
    else:
        told, text = _odd_links(case)
        data = text.encode("utf-8", "surrogatepass")
    case.tell(f"links: {told}")
    Path("links.csv").write_bytes(data)
    verdict = case.judge(outcome := case.d3gd("graph", "--edges", "links.csv", "--json"))
    if verdict == REFUSED:
        return REFUSED
    facts, pairs = json.loads(outcome.out), _trusted_pairs(data)
    if pairs is None:
        silent(f"accepted, with {facts['n']} agents and {facts['links']} links")
    if (facts["n"], facts["links"]) != (_agents_of(pairs), len({pair for pair in pairs if pair[0] != pair[1]})):
        silent(f"{facts['n']} agents and {facts['links']} links; it should be {pairs}"[:300])
    return RIGHT


def weighted(case: Case) -> str:
    """A table of links with a column of weights, one of them odd."""
    rng = case.rng
    header, *rows = controls.LINKS.splitlines()
    odd = [
        "nan",
        "inf",
        "-0.25",
        "0",
        "1",
        "1.5",
        "1e-320",
        "1e400",
        "",
        "x",
        "1_0",
        ESCAPE,
        "9" * 5000,
        " 0.5 ",
        "0,5",
    ]
    values = [rng.choice(odd) if rng.random() < 0.2 else rng.choice(["0.25", "0.125"]) for _ in rows]
    case.tell(f"links with weights {[value[:9] for value in values]}")
    text = "\n".join([f"{header},weight", *(f"{row},{value}" for row, value in zip(rows, values, strict=True))]) + "\n"
    content = controls.experiment("files")
    del content["weights"]
    content |= {"iterations": 2, "algorithm": {"kind": "DiDGD", "step_size": 0.05}}
    controls.write_inputs(case.folder)
    Path("links.csv").write_text(text)
    Path("experiment.toml").write_text(controls.toml(content))
    verdict = case.judge(case.d3gd("run", "experiment.toml", "--out", "run"))
    if verdict == REFUSED:
        return REFUSED
    found, wanted = Result.load("run").weights.toarray(), _trusted_weights(rows, values)
    if wanted is None or not np.allclose(found, wanted, rtol=0, atol=1e-15):
        silent(f"accepted as {found.tolist()}")
    return RIGHT


def _trusted_weights(rows: list[str], values: list[str]) -> Any:
    """The dense matrix of links with weights, what is left to one on the diagonal; None where there is none."""
    dense = np.zeros((4, 4))
    try:
        for row, value in zip(rows, values, strict=True):
            source, target = map(int, row.split(","))
            dense[target, source] = plain_number(value)
    except ValueError:
        return None
    rest = 1 - dense.sum(axis=1)
    return dense + np.diag(rest) if (dense >= 0).all() and (rest > 0).all() else None


def changing(case: Case) -> str:
    """A table of the links that are there for a while, among those of the network."""
    rng = case.rng
    if rng.random() < 0.5:
        data, told = damaged(case, controls.LINKS.encode())
    else:
        told, text = _odd_links(case)
        data = text.encode("utf-8", "surrogatepass")
    case.tell(f"links in turn: {told}")
    controls.write_inputs(case.folder)
    Path("some.csv").write_bytes(data)
    content = controls.experiment("plain")
    content["graph"] = {"kind": "edges", "file": "links.csv"}
    content["conditions"] = {"graphs": ["some.csv", "links.csv"], "biased": True}
    Path("experiment.toml").write_text(controls.toml(content))
    verdict = case.judge(case.d3gd("run", "experiment.toml", "--out", "run"))
    if verdict == REFUSED:
        return REFUSED
    pairs, whole = _trusted_pairs(data), _trusted_pairs(controls.LINKS.encode())
    numbers = {(int(a), int(b)) for a, b in pairs or []}
    if pairs is None or any(a != b and (str(a), str(b)) not in whole for a, b in numbers):
        silent("accepted")
    Path("some.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in sorted(numbers)))
    plainly = case.judge(case.d3gd("run", "experiment.toml", "--out", "plainly"))
    if plainly != RIGHT or not controls.same(Result.load("run"), Result.load("plainly")):
        silent("read as other links")
    return RIGHT


def _odd_links(case: Case) -> tuple[str, str]:
    rng = case.rng
    odd = [
        "-1", "1.0", "1e0", " 3 ", "٣", "²", "0x1", "+1", "", "nan", "1_0", "007", str(10**9), str(2**31), str(2**62),
        str(2**63), str(2**64), "9" * 30, "9" * 5000, "a" * 200_000, "a,b", '"', "'", "\x00", ESCAPE, "é", "\u202e",
        "[red]x[/red]", "\ufeff", "0\t", "\n", "{0}", "%s", "=1+1", "\x85", "\u2028", "None", "true",
    ]  # fmt: skip
    value = rng.choice(odd)
    value = f'"{value}"' if rng.random() < 0.3 else value
    lines = rng.choice([controls.LINKS, controls.NAMED_LINKS]).splitlines()
    ways: dict[str, Callable[[], str]] = {
        "an end of a link": lambda: put(lines, rng.randrange(1, len(lines)), rng.randrange(2), value),
        "an end of every link": lambda: "\n".join([lines[0], *(f"{value},{line.split(',')[1]}" for line in lines[1:])]),
        "the header": lambda: put(lines, 0, rng.randrange(2), value),
        "a third column": lambda: "\n".join(f"{line},{value}" for line in lines),
        "a line": lambda: "\n".join([*lines, value]),
        "semicolons": lambda: "\n".join(lines).replace(",", ";"),
        "CRLF": lambda: "\r\n".join(lines),
        "only a header": lambda: lines[0],
        "columns exchanged": lambda: "\n".join(",".join(reversed(line.split(","))) for line in lines),
        "a column twice": lambda: "\n".join([f"{lines[0]},source", *(f"{line},{value}" for line in lines[1:])]),
    }
    way = rng.choices(list(ways), [8, 2, 2, 1, 2, 1, 1, 1, 1, 1])[0]
    return f"{value[:30]!r} as {way}", ways[way]() + "\n"


def _trusted_pairs(data: bytes) -> list[tuple[str, str]] | None:
    """The links that a table stands for, by the agents' names, or None if it stands for nothing."""
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    rows = [row for row in rows if row]
    header = [name.strip() for name in rows[0]] if rows else []
    if header.count("source") != 1 or header.count("target") != 1:
        return None
    places = [header.index(name) for name in ("source", "target")]
    if len(rows) == 1 or any(len(row) <= max(places) for row in rows):
        return None
    pairs = [tuple(row[place].strip() for place in places) for row in rows[1:]]
    names = {name for pair in pairs for name in pair}
    if not all(names):
        return None
    if all(name.isdecimal() for name in names):
        return [(str(int(a)), str(int(b))) for a, b in pairs] if max(map(len, names)) < 10 else None
    return pairs


def _agents_of(pairs: list[tuple[str, str]]) -> int:
    names = {name for pair in pairs for name in pair}
    return 1 + max(map(int, names)) if all(name.isdecimal() for name in names) else len(names)
