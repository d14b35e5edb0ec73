"""What became of the cases: lines, counts and tables."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.fuzz.case import FAILURES, FUZZER, REFUSED, RIGHT
from tests.fuzz.pool import Verdict

PASSED = (REFUSED, RIGHT, "interrupted")
_COLUMNS = {
    "refused in words": (REFUSED,),
    "accepted and right": (RIGHT, "interrupted"),
    "tracebacks": ("traceback", FUZZER),
    "unclear words": ("unclear",),
    "crashes": ("crash",),
    "memory": ("memory",),
    "hangs": ("hang",),
    "silent": ("silent",),
}
_EXAMPLES = 3  # of failures alike
_BEGIN, _END = "<!-- counts -->\n", "<!-- end of counts -->"


def line(verdict: Verdict) -> str:
    """One case in one line."""
    said = f"\n      -> {verdict.said}" if verdict.said else ""
    return f"{verdict.kind:9} {verdict.name}  ({verdict.seconds:.2f} s)  {verdict.attack}{said}"


def progress(verdicts: Sequence[Verdict], total: int, seconds: float) -> str:
    """How far it is."""
    failed = sum(verdict.kind not in PASSED for verdict in verdicts)
    return f"{len(verdicts)}/{total} cases, {failed} failed, {seconds:.0f} s"


def failures(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield each distinct failure, the most frequent first, with cases that show it."""
    alike: defaultdict[tuple[str, str, str], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.kind not in PASSED:
            alike[verdict.kind, verdict.family, _gist(verdict.said)].append(verdict)
    for (kind, _, _), found in sorted(alike.items(), key=lambda item: -len(item[1])):
        yield f"{kind}, {len(found)} times: {found[0].said}"
        for verdict in found[:_EXAMPLES]:
            yield f"    --only {verdict.name}   {verdict.attack}"


def table(verdicts: Sequence[Verdict]) -> str:
    """Counts per family, in Markdown."""
    families = list(dict.fromkeys(verdict.family for verdict in verdicts))
    rows = [["family", "cases", *_COLUMNS]]
    for name in [*sorted(families), "all"]:
        kinds = Counter(verdict.kind for verdict in verdicts if name in ("all", verdict.family))
        counts = [sum(kinds[kind] for kind in chosen) for chosen in _COLUMNS.values()]
        rows.append([name, str(kinds.total()), *map(str, counts)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    rule = (
        "|"
        + "|".join(":" + "-" * width + "-" if i == 0 else "-" * (width + 1) + ":" for i, width in enumerate(widths))
        + "|"
    )
    return "\n".join([lines[0], rule, *lines[1:]])


def write(page: Path, verdicts: Sequence[Verdict], seed: int) -> None:
    """Put the counts of a run into a page, between its two marks."""
    text = page.read_text()
    before, rest = text.split(_BEGIN)
    after = rest.split(_END)[1]
    slowest = max(verdict.seconds for verdict in verdicts if verdict.kind in PASSED)
    note = f"{len(verdicts):,} cases with `--seed {seed}`; the slowest took {slowest:.1f} s."
    page.write_text(f"{before}{_BEGIN}{table(verdicts)}\n\n{note}\n{_END}{after}")


def _gist(said: str) -> str:
    """What failures alike have in common: the words without numbers, names in quotes and paths."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"|/\S+|-?\d[\d.e+]*", "*", said)
    return re.sub(r"(.)\1{9,}", r"\1", text)[:90]


assert {kind for kinds in _COLUMNS.values() for kind in kinds} >= {*FAILURES, *PASSED}
