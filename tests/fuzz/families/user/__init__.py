"""A user's own code: problems, methods, schedules, metrics and callbacks that return what they should not."""

import traceback
from pathlib import Path

from tests.fuzz.case import REFUSED, BrokenError, Case
from tests.fuzz.families.user import methods, problems, records
from tests.fuzz.families.user.running import Signs, run

SECONDS = 20.0

_WAYS = {
    problems.gradients_changed: 10,
    problems.functions: 6,
    problems.losses_changed: 5,
    problems.attributes: 4,
    methods.steps: 8,
    methods.methods: 8,
    records.metrics_changed: 8,
    records.others: 5,
}


def prepare(home: Path) -> None:
    run(Signs())


def case(case: Case) -> str:
    try:
        return case.rng.choices(list(_WAYS), list(_WAYS.values()))[0](case)
    except BrokenError as broken:
        if broken.__context__ is not None and _raised_by_user(broken.__context__):
            return REFUSED  # Python itself has told the user where
        raise


def _raised_by_user(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and "# user code" in (frames[-1].line or "")
