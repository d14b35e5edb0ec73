"""Real launchers on this machine, each bounded in time."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]


def require(*extras):
    """Skip a test that needs an extra which is not installed."""
    for extra in extras:
        name = "torch" if extra == "fork" else extra
        if find_spec({"mpi": "mpi4py", "torch": "torch"}[name]) is None:
            pytest.skip(f"it needs an extra: pip install 'd3gd[{name}]'")


def command(launcher, ranks, *words):
    """The words of a launch of Python with ``words``: by mpiexec, by torchrun ("torch"), or as copies ("fork")."""
    if launcher == "mpi":
        return [BIN / "mpiexec", "-n", str(ranks), sys.executable, *words]
    if launcher == "fork":
        return [sys.executable, ROOT / "tests/helpers/forking.py", str(ranks), *words]
    script = words[1:] if words[0] == "-m" else words
    module = ["-m"] if words[0] == "-m" else []
    return [
        sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *module, *script
    ]  # fmt: skip


def launch(launcher, ranks, *words, cwd, seconds=240):
    """Launch, and return the exit code, what was printed and what was complained of."""
    own = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    process = subprocess.Popen(
        [str(word) for word in command(launcher, ranks, *map(str, words))],
        cwd=cwd,
        env={**os.environ, **own},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()  # a launcher that is asked to end takes its ranks with it
        out, err = process.communicate(timeout=60)
        raise AssertionError(f"the launch did not end: {out} {err}") from None
    return process.returncode, out, err
