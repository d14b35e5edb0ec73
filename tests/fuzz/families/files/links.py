"""Tables of links, compared with what another reader makes of them."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

from tests.fuzz import controls
from tests.fuzz.case import REFUSED, RIGHT, Case, silent
from tests.fuzz.families.files.damage import ESCAPE, damaged, put


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
    facts, wanted = json.loads(outcome.out), _trusted_links(data)
    if wanted is None:
        silent(f"accepted, with {facts['n']} agents and {facts['links']} links")
    if wanted != (facts["n"], facts["links"]):
        silent(f"{facts['n']} agents and {facts['links']} links; it should be {wanted}")
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


def _trusted_links(data: bytes) -> tuple[int, int] | None:
    """The numbers of agents and links that a table of links stands for, or None if it stands for nothing."""
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), skipinitialspace=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    rows = [row for row in rows if row]
    if not rows or rows[0].count("source") != 1 or rows[0].count("target") != 1:
        return None
    places = [rows[0].index(name) for name in ("source", "target")]
    try:
        pairs = [tuple(row[place].strip() for place in places) for row in rows[1:]]
    except IndexError:
        return None
    if not pairs or any(not name for pair in pairs for name in pair):
        return None
    names = {name for pair in pairs for name in pair}
    if all(name.isdecimal() for name in names):
        numbers = {(int(a), int(b)) for a, b in pairs} if max(map(len, names)) < 10 else set()
        return (1 + max(map(max, numbers)), sum(a != b for a, b in numbers)) if numbers else None
    return len(names), len({pair for pair in pairs if pair[0] != pair[1]})
