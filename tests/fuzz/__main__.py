"""Attack d3gd with many cases, and count how they end."""

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz import report
from tests.fuzz.pool import run

SHARES = {
    "toml": 23,
    "files": 24,
    "flips": 20,
    "comparisons": 3,
    "folders": 4,
    "cli": 6,
    "api": 12,
    "user": 8,
}  # of 100 cases
RANKS = 20  # cases on several ranks: each takes seconds


def main() -> int:
    """Return 1 if any case failed."""
    options = _options()
    jobs = planned(options.cases, options.seed, options.family)
    if options.only:
        jobs = [(name, int(seed)) for name, _, seed in (only.partition(":") for only in options.only)]
    began, shown, verdicts = time.monotonic(), 0.0, []
    try:
        for verdict in run(jobs, processes=options.jobs):
            verdicts.append(verdict)
            if (verdict.kind not in report.PASSED and options.verbose) or options.only:
                print(report.line(verdict), flush=True)
            if time.monotonic() - shown > 10:
                shown = time.monotonic()
                print(report.progress(verdicts, len(jobs), shown - began), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    for text in report.failures(verdicts):
        print(text)
    print(report.table(verdicts))
    print(f"{len(verdicts)} cases in {time.monotonic() - began:.0f} s")
    if options.out:
        report.write(options.out, verdicts, options.seed)
    return int(any(verdict.kind not in report.PASSED for verdict in verdicts))


def planned(cases: int, seed: int, families: list[str] | None = None) -> list[tuple[str, int]]:
    """Return the cases of a run, families mixed: the same seed gives the same cases."""
    ranks = RANKS if families is None and cases >= 1000 else 0
    chosen = families or list(SHARES)
    total = sum(SHARES.get(name, 1) for name in chosen)
    counts = {name: (cases - ranks) * SHARES.get(name, 1) // total for name in chosen}
    counts[chosen[0]] += cases - ranks - sum(counts.values())
    counts |= {"ranks": ranks} if ranks else {}
    first = seed * 1_000_000
    places = [((i + 0.5) / count, name, first + i) for name, count in counts.items() for i in range(count)]
    return [(name, number) for _, name, number in sorted(places)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="how many in all")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other cases")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--family", action="append", choices=[*SHARES, "ranks"], help="only this one; may be repeated")
    parser.add_argument("--only", action="append", metavar="FAMILY:SEED", help="repeat this case; may be repeated")
    parser.add_argument("--out", type=Path, help="the page whose table of counts to replace, like docs/results/fuzz.md")
    parser.add_argument("--verbose", action="store_true", help="print every failure as it happens")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
