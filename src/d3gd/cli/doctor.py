# ruff: noqa: D301 - the \b that keeps typer from joining lines must be the character itself
"""What is installed here, and whether it works."""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import typer

from d3gd.cli.base import FAILED, app
from d3gd.errors import printable

CORE = ("numpy", "scipy", "numba", "networkx", "matplotlib", "joblib")
EXTRAS: Mapping[str, tuple[str, ...]] = {
    "data": ("scikit-learn", "pandas"),
    "torch": ("torch",),
    "mpi": ("mpi4py", "mpich"),
    "sites": ("pyzmq",),
    "privacy": ("dp-accounting",),
    "cluster": ("distributed",),
    "parquet": ("pandas", "pyarrow"),
    "tensorboard": ("tensorboard", "torch"),
    "mlflow": ("mlflow",),
    "wandb": ("wandb",),
}


@app.command()
def doctor() -> None:
    """Show what is installed and what is missing, and test it in a few seconds.

    The first time takes longer, since kernels are compiled. Exit code 1 means that a test failed.

    \b
    Example:
      d3gd doctor
    """
    from d3gd import __version__
    from d3gd.kernels.threads import cores

    print(f"d3gd {__version__}, Python {sys.version.split()[0]}, {cores()} threads")
    print(f"{'core':11} {', '.join(f'{name} {_version(name)}' for name in CORE)}")
    for extra, names in EXTRAS.items():
        missing = [name for name in names if _version(name) is None]
        found = ", ".join(f"{name} {_version(name)}" for name in names if name not in missing)
        todo = f"missing: {', '.join(missing)}; install with: pip install 'd3gd[{extra}]'" if missing else ""
        print(f"{extra:11} {'; '.join(filter(None, (found, todo)))}")
    print(printable(f"{'mpiexec':11} {_mpiexec() or 'not found; runs on several processes can use torchrun instead'}"))
    print()
    failed = 0
    for what, test in TESTS.items():
        began = time.perf_counter()
        try:
            test()
            outcome = "ok"
        except Exception as error:  # whatever is broken here, the other tests go on
            failed += 1
            outcome = f"FAILED: {type(error).__name__}: {error}"
        print(printable(f"{time.perf_counter() - began:6.2f} s  {what}: {outcome}"), flush=True)
    raise typer.Exit(FAILED if failed else 0)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _mpiexec() -> str | None:
    """Return the launcher on the path, or the one that comes with Python's packages."""
    return shutil.which("mpiexec") or shutil.which("mpiexec", path=str(Path(sys.executable).parent))


def _run_and_resume() -> None:
    """Raise an error unless a run in two parts, read from disk, has the bits of a whole one."""
    import numpy as np

    import d3gd

    graph = d3gd.graphs.erdos_renyi(20, 0.6, seed=0)
    problem = d3gd.problems.sigmoid_classification(agents=20, seed=0)
    method = d3gd.D3GD(step_size=0.1)
    whole = d3gd.run(method, graph, problem, iterations=100, progress=False)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        d3gd.run(method, graph, problem, iterations=50, progress=False, out=out)
        d3gd.run(method, graph, problem, iterations=100, progress=False, out=out, resume=True)
        again = d3gd.Result.load(out)
    if not np.array_equal(whole.x, again.x):
        raise ArithmeticError("a resumed run has other models than a whole one")


def _ranks() -> None:
    """Raise an error unless two ranks, as threads, have the bits of one."""
    import numpy as np

    import d3gd
    from d3gd.transports.threads import on_threads

    graph, problem = d3gd.graphs.ring(6), d3gd.problems.quadratic(agents=6, dim=4)
    method = d3gd.D3GD(step_size=0.05)
    alone = d3gd.run(method, graph, problem, iterations=30, progress=False)
    for result in on_threads(2, lambda rank: d3gd.run(method, graph, problem, iterations=30, transport=rank)):
        if not np.array_equal(result.x, alone.x):
            raise ArithmeticError("two ranks have other models than one")


def _compiled() -> None:
    """Raise an error unless the compiled kernels load and agree with the plain ones."""
    import numpy as np

    import d3gd

    graph, problem = d3gd.graphs.ring(20), d3gd.problems.quadratic(agents=20, dim=50)
    plain = d3gd.run(d3gd.D3GD(step_size=0.05), graph, problem, iterations=10, progress=False)
    import d3gd.kernels.compiling  # from now on small networks use them too

    compiled = d3gd.run(d3gd.D3GD(step_size=0.05), graph, problem, iterations=10, progress=False)
    if not np.allclose(plain.x, compiled.x, rtol=1e-9, atol=1e-12):
        raise ArithmeticError("compiled kernels disagree with plain ones")


def _figure_and_page() -> None:
    """Raise an error unless figures and reports can be written."""
    import d3gd

    graph, problem = d3gd.graphs.ring(4), d3gd.problems.quadratic(agents=4, dim=2)
    result = d3gd.run(d3gd.D3GD(step_size=0.05), graph, problem, iterations=20, progress=False, record_weights=True)
    with tempfile.TemporaryDirectory() as folder:
        d3gd.plots.plot_runs({"test": result}, Path(folder) / "figure.pdf")
        result.report(Path(folder) / "report.html")


TESTS: Mapping[str, Callable[[], None]] = {
    "a run that is resumed has the bits of a whole one": _run_and_resume,
    "two ranks have the bits of one": _ranks,
    "compiled kernels agree with plain ones": _compiled,
    "figures and reports are written": _figure_and_page,
}
