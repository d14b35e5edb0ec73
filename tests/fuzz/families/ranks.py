"""Two processes under mpiexec: refused where their experiments differ, and one process's result where they do not."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from d3gd.result import Result
from tests.fuzz import controls
from tests.fuzz.case import RIGHT, Case, Outcome, silent

SECONDS = 60.0  # two interpreters start, on a machine that may have other work
ROOT = Path(__file__).parents[3]

# Each process reads the experiment that is named after its rank.
_COMMAND = """
import os, sys
from d3gd.cli import call
sys.exit(call(["run", f"rank{os.environ['PMI_RANK']}.toml", *sys.argv[1:]]))
"""

_CHANGES: dict[str, dict[str, Any]] = {
    "seed of the problem": {"problem": {"seed": 5}},
    "seed of the run": {"seed": 5},
    "regularization": {"problem": {"regularization": 0.02}},
    "batch": {"problem": {"batch": 3}},
    "no batch": {"problem": {"batch": None}},
    "alpha": {"problem": {"alpha": 0.6}},
    "samples": {"problem": {"samples": 11}},
    "test set": {"problem": {"test_samples": 21}},
    "step": {"algorithm": {"step_size": 0.2}},
    "method": {"algorithm": {"averaged": False}, "conditions": {"biased": True}},
    "network": {"graph": {"seed": 4}},
    "weights": {"weights": {"stay": 0.3}},
    "loss": {"conditions": {"loss": 0.3}},
    "delay": {"conditions": {"delay": 1}},
    "precision": {"dtype": "float32"},
    "iterations": {"iterations": 16},
    "records": {"every": 3},
    "checkpoints": {"checkpoint_every": 3},
    "metrics": {"metrics": ["loss"]},
    "target": {"target": {"loss": 1e-6}},
    "nothing": {},
}


def prepare(home: Path) -> None:
    controls.result("noisy")


def case(case: Case) -> str:
    rng = case.rng
    what = "nothing" if rng.random() < 0.15 else rng.choice(list(_CHANGES))
    odd = rng.randrange(2)
    case.tell(f"rank {odd} has another {what}")
    for rank in (0, 1):
        content = controls.experiment("noisy")
        if rank == odd:
            _change(content, _CHANGES[what])
        Path(f"rank{rank}.toml").write_text(controls.toml(content))
    outcome = _launched("--out", "run", "--timeout", "20")
    if what == "nothing":
        # Metrics are sums over ranks: equal to rounding only, as docs/howto/distributed.md says.
        if outcome.code != 0 or not controls.same(Result.load("run"), controls.result("noisy"), rounding=1e-12):
            silent(f"two ranks differ from one process: {outcome.err}")
        return RIGHT
    errors = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    if outcome.code == 0:
        silent("accepted")
    return case.judge(Outcome(2, "", "\n".join(errors)))


def _change(content: dict[str, Any], change: dict[str, Any]) -> None:
    for key, value in change.items():
        if isinstance(value, dict):
            table = content.setdefault(key, {})
            table.update(value)
            for name in [name for name, item in table.items() if item is None]:
                del table[name]
        else:
            content[key] = value


def _launched(*words: str) -> Outcome:
    """Launch two ranks, which end with the launcher."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    launcher = Path(sys.executable).parent / "mpiexec"
    process = subprocess.Popen(
        [launcher, "-n", "2", sys.executable, "-c", _COMMAND, *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_unlimited,
    )
    try:
        out, err = process.communicate(timeout=SECONDS - 15)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
        raise
    return Outcome(process.returncode, out, err)


def _unlimited() -> None:
    """MPI maps more memory than a case may have, without using it."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
