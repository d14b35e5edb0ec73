"""Compiled equations are bitwise equal to NumPy's, and every shared update has one."""

import os
import subprocess
import sys

import numpy as np
import pytest

import d3gd
from d3gd import kernels
from d3gd.kernels import threads
from d3gd.network import Network
from d3gd.rules import updates

COLUMNS = {"y", "pi"}  # arguments with one number per agent
EQUATIONS = {name: made.__wrapped__ for name, made in vars(updates).items() if hasattr(made, "__wrapped__")}


@pytest.fixture(scope="module")
def fused():
    """The module, forgotten afterwards, so that other tests still go through NumPy."""
    import d3gd.kernels.fused as module

    yield module
    for name in ("d3gd.kernels.fused", "d3gd.kernels.compiling"):
        sys.modules.pop(name, None)


def arguments(equation, agents, dim):
    """Random rows and numbers for an equation."""
    rng, rows, numbers = np.random.default_rng(0), [], {}
    for name, kind in equation.__annotations__.items():
        if name == "return":
            continue
        if kind in (int, float):
            numbers[name] = agents if kind is int else rng.random()
        else:
            rows.append(rng.random((agents, 1)) if name in COLUMNS else rng.normal(size=(agents, dim)))
    return rows, numbers


@pytest.mark.parametrize("name", EQUATIONS)
def test_every_update_is_compiled_to_the_bits_of_numpy(fused, name):
    equation = EQUATIONS[name]
    rows, numbers = arguments(equation, 7, 5)
    result = np.empty((7, 5))
    assert fused.evaluate(equation, rows, numbers, result)
    assert np.array_equal(result, equation(*rows, **numbers))
    expected = equation(*rows, **numbers)
    assert fused.evaluate(equation, rows, numbers, rows[0])  # in place
    assert np.array_equal(rows[0], expected)


@pytest.mark.parametrize(
    ("name", "precisions", "result"),
    [
        ("descended", "sss", "s"),
        ("corrected", "ssdd", "s"),
        ("correction", "dsd", "d"),
        ("tracked", "dss", "d"),
        ("followed", "ssss", "s"),
        ("followed", "sssd", "s"),
        ("shifted", "sd", "s"),
        ("retraced", "sssd", "s"),
        ("pushed", "sdd", "s"),
        ("remembered", "ss", "s"),
        ("observed", "ss", "s"),
        ("scaled", "sss", "s"),
        ("scaled_direction", "ssss", "s"),
        ("advanced", "ssd", "s"),
    ],
)
def test_models_in_single_precision_too(fused, name, precisions, result):
    equation, kinds = EQUATIONS[name], {"s": np.float32, "d": np.float64}
    rows, numbers = arguments(equation, 7, 300)
    rows = [row.astype(kinds[kind]) for row, kind in zip(rows, precisions, strict=True)]
    found = np.empty((7, 300), kinds[result])
    expected = equation(*rows, **numbers).astype(kinds[result])
    assert fused.evaluate(equation, rows, numbers, found)
    assert np.array_equal(found, expected)
    if precisions[0] == result:
        assert fused.evaluate(equation, rows, numbers, rows[0])  # in place
        assert np.array_equal(rows[0], expected)


def test_what_numpy_rounds_otherwise_and_other_layouts_are_left_to_it(fused):
    equation = EQUATIONS["tracked"]
    rows, numbers = arguments(equation, 7, 5)
    mixed = [rows[0].astype(np.float32), rows[1], rows[2]]
    assert not fused.evaluate(lambda x, y, z, a: a * x + y + z, mixed, {"a": 0.3}, np.empty((7, 5)))
    assert not fused.evaluate(equation, [row.astype(np.float16) for row in rows], numbers, np.empty((7, 5)))
    assert not fused.evaluate(equation, [np.asfortranarray(rows[0]), *rows[1:]], numbers, np.empty((7, 5)))
    assert not fused.evaluate(lambda x, y, z, w: x, [*rows, rows[0]], {}, np.empty((7, 5)))  # no such loop


def test_an_update_of_a_network_has_the_same_bits_on_either_way_and_any_number_of_threads(fused, monkeypatch):
    graph = d3gd.graphs.ring(40)
    net = Network(graph, d3gd.weights.uniform(graph))
    rows, numbers = arguments(EQUATIONS["design_residual"], 40, 6)
    plain = updates.design_residual(net, *rows, **numbers)
    monkeypatch.setattr(threads, "_DIRECT", 1)
    for compiled in (False, True):
        monkeypatch.setattr(kernels.Meter, "compiled", lambda self, numbers, compiled=compiled: compiled)
        for count in (1, 3):
            monkeypatch.setattr(threads, "cores", lambda count=count: count)
            assert np.array_equal(updates.design_residual(net, *rows, **numbers), plain)


def test_machine_code_of_an_equation_is_kept_but_not_after_a_change_of_it(tmp_path):
    code = """
import sys, numpy as np
from d3gd.kernels.fused import _kernel, evaluate
from d3gd.rules.updates import rowwise
@rowwise()
def moved(x, g, y, gamma):
    return x {} gamma * g / y
result = np.empty((2, 1))
equation = moved.__wrapped__
assert evaluate(equation, [np.ones((2, 1)), np.ones((2, 2))[:, :1].copy(), np.ones((2, 1))], {{"gamma": 3.0}}, result)
print(result[0, 0], sum(_kernel(equation, "xxx").stats.cache_hits.values()))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    answers = [
        subprocess.run(
            [sys.executable, "-c", code.format(sign)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        ).stdout.split()
        for sign in "++-"
    ]
    assert answers == [["4.0", "0"], ["4.0", "1"], ["-2.0", "0"]]
