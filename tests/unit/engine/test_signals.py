"""Ctrl-C at a prompt returns the partial result; SIGTERM ends a script with its exit code and a checkpoint."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np

import d3gd
from tests.helpers.notebooks import notebook

SCRIPT = """
import os, signal, d3gd
graph, problem = d3gd.graphs.ring(4), d3gd.problems.quadratic(agents=4, dim=2)
method = d3gd.DiDGD(step_size=0.05)
def poke(snapshot):
    if snapshot.k == 20: os.kill(os.getpid(), signal.{signal})

result = d3gd.run(method, graph, problem, iterations=100, callbacks=[poke], **{options})
{then}
"""


def python(tmp_path, *flags, then="", **words):
    script = SCRIPT.format(then=textwrap.dedent(then), **words)
    return subprocess.run(
        [sys.executable, *flags], input=script, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )


def straight():
    graph, problem = d3gd.graphs.ring(4), d3gd.problems.quadratic(agents=4, dim=2)
    return d3gd.DiDGD(step_size=0.05), graph, problem


def test_an_interrupt_at_the_prompt_returns_the_result_so_far(tmp_path):
    then = "import numpy; numpy.save('x.npy', result.x); print(result.status, result.iterations.tolist())"
    answer = python(tmp_path, "-i", signal="SIGINT", options="{'out': 'run'}", then=then)
    assert "interrupted [0, 10, 20]" in answer.stdout, answer.stderr
    assert np.array_equal(np.load(tmp_path / "x.npy"), d3gd.run(*straight(), iterations=20).x)
    resumed = d3gd.run(*straight(), iterations=100, out=tmp_path / "run", resume=True)
    assert resumed.status == "completed"
    assert np.array_equal(resumed.x, d3gd.run(*straight(), iterations=100).x)


CELL = """
import d3gd, numpy
graph, problem = d3gd.graphs.ring(4), d3gd.problems.quadratic(agents=4, dim=2)
def tell(snapshot):
    if snapshot.k == 20: print("underway", flush=True)

result = d3gd.run(d3gd.DiDGD(step_size=0.05), graph, problem, iterations=10**9, callbacks=[tell], metrics=["gradients"])
"""


def test_an_interrupt_in_a_notebook_returns_the_result_so_far(tmp_path):
    with notebook(tmp_path) as book:
        for stop in (book.interrupt, book.request_interrupt):
            book.run(CELL, when="underway", then=stop)
            status, k = book.run("numpy.save('x.npy', result.x); print(result.status, result.iterations[-1])").split()
            assert status == "interrupted"
            assert np.array_equal(np.load(tmp_path / "x.npy"), d3gd.run(*straight(), iterations=int(k), every=int(k)).x)
            (tmp_path / "x.npy").unlink()


def test_an_interrupt_of_a_script_is_raised(tmp_path):
    answer = python(tmp_path, "-", signal="SIGINT", options="{}", then="print(result.status)")
    assert answer.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in answer.stderr


def test_sigterm_leaves_a_checkpoint_and_the_usual_exit_code(tmp_path):
    answer = python(tmp_path, "-", signal="SIGTERM", options="{'out': 'run'}", then="print('not reached')")
    assert (answer.returncode, answer.stdout) == (128 + signal.SIGTERM, "")
    resumed = d3gd.run(*straight(), iterations=100, out=tmp_path / "run", resume=True)
    assert np.array_equal(resumed.x, d3gd.run(*straight(), iterations=100).x)


def test_without_a_folder_or_with_a_handler_of_one_s_own_sigterm_stays_what_it_is(tmp_path):
    assert python(tmp_path, "-", signal="SIGTERM", options="{}").returncode == -signal.SIGTERM
    seen = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        poke = [lambda snapshot: os.kill(os.getpid(), signal.SIGTERM) if snapshot.k == 20 else None]
        result = d3gd.run(*straight(), iterations=100, out=tmp_path / "run", callbacks=poke)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (result.status, seen) == ("completed", [signal.SIGTERM])
