"""Compiled kernels are bitwise equal to the plain ones, on any number of threads."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd import kernels
from d3gd.kernels import threads
from d3gd.kernels.plain import Plain
from d3gd.kernels.rows import rectangles
from d3gd.network import Network
from d3gd.rules import updates
from d3gd.transports.threads import on_threads
from tests.helpers.strategies import examples

PRECISIONS = (np.float64, np.float32)
LOADED = tuple(
    f"d3gd.{name}"
    for name in ("kernels.compiled", "kernels.compiling", "kernels.fused", "kernels.wide", "problems.sigmoid_kernel")
)


@pytest.fixture(scope="module")
def compiled():
    """The compiled kernels, forgotten afterwards, so that other tests still go through the plain ones."""
    import d3gd.kernels.compiled as module

    yield module
    for name in LOADED:
        sys.modules.pop(name, None)


@st.composite
def structures(draw):
    """Rows of unequal length, also far longer than the others, and where their entries come from."""
    lengths = draw(st.lists(st.one_of(st.integers(1, 9), st.integers(30, 90)), min_size=1, max_size=12))
    indptr = np.append(0, np.cumsum(lengths))
    heard = draw(st.integers(1, 15))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return indptr, rng.integers(0, heard, indptr[-1]), heard, rng


def way(patch, compiled):
    """Make every call go one way."""
    for rule in ("large", "compiled"):
        patch.setattr(kernels.Meter, rule, lambda self, numbers: compiled)


def same(a, b):
    return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)


@pytest.mark.parametrize("dtype", PRECISIONS)
@examples(60)  # the first example compiles
@given(case=structures(), d=st.one_of(st.integers(1, 40), st.integers(120, 700)))
def test_compiled_verbs_have_the_bits_of_the_plain_ones(compiled, dtype, case, d):
    indptr, columns, heard, rng = case
    plain, fast = Plain(indptr, columns, heard), compiled.Compiled(indptr, columns)
    a, edges = rng.random(len(columns)), (rng.normal(size=len(columns)) * 10.0 ** rng.integers(-6, 6)).astype(dtype)
    x, v, o = (rng.normal(size=(rows, d)).astype(dtype) for rows in (heard, len(indptr) - 1, len(indptr) - 1))
    split = rng.integers(0, heard + 1)
    for precision in (dtype, np.float64):
        assert same(plain.mix(a, x, precision), fast.mix(a, x[:split], x[split:], precision))
    assert same(plain.dot(v, x, o), fast.dot(v, x, o))
    assert same(plain.dot(v, x, None), fast.dot(v, x, None))
    assert same(plain.project(edges), fast.project(edges))
    assert same(plain.project(np.round(edges)), fast.project(np.round(edges)))  # ties


@pytest.mark.parametrize("kernel", ["plain", "compiled"])
def test_a_row_with_nan_is_lost_and_no_other(compiled, kernel):
    indptr, columns = np.array([0, 3, 5]), np.zeros(5, dtype=np.int64)
    project = (Plain(indptr, columns, 1) if kernel == "plain" else compiled.Compiled(indptr, columns)).project
    with np.errstate(all="ignore"):
        projected = project(np.array([0.1, np.nan, 0.2, 0.9, 0.5]))
    assert np.isnan(projected[:3]).all()
    assert projected[3:] == pytest.approx([0.7, 0.3])


@pytest.mark.parametrize("dtype", PRECISIONS)
@examples(15)
@given(agents=st.integers(1, 5), samples=st.integers(1, 20), features=st.integers(1, 12), seed=st.integers(0, 99))
def test_compiled_sigmoid_sums_have_the_bits_of_the_plain_ones(compiled, dtype, agents, samples, features, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(agents, samples, features)), rng.integers(0, 4, (agents, samples))
    problem = d3gd.problems.SigmoidClassification(X, y, classes=4)
    x = rng.normal(size=(agents, problem.dim)).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        way(patch, False)
        plain = problem.gradients(x), problem.losses(x)
        way(patch, True)
        fast = problem.gradients(x), problem.losses(x)
    assert all(map(same, plain, fast))
    assert plain[0].dtype == dtype


@pytest.mark.parametrize("method", [d3gd.DiDGD, d3gd.D3GD, d3gd.PerronD3GD])
def test_a_run_has_the_same_bits_with_compiled_kernels_and_on_any_number_of_threads(compiled, monkeypatch, method):
    graph, problem = d3gd.graphs.regular(40, 4, seed=1), d3gd.problems.sigmoid_classification(agents=40, seed=1)

    def run():
        return d3gd.run(method(step_size=0.1), graph, problem, iterations=12, every=12, metrics=["bytes"]).x

    way(monkeypatch, False)
    plain = run()
    way(monkeypatch, True)
    assert np.array_equal(run(), plain)
    monkeypatch.setattr(threads, "_DIRECT", 1)
    monkeypatch.setattr(threads, "_PIECE", 300)
    for count in (1, 3):
        monkeypatch.setattr(threads, "cores", lambda count=count: count)
        assert np.array_equal(run(), plain)


def test_compiled_kernels_are_loaded_for_large_calls_and_after_many_small_ones(monkeypatch):
    monkeypatch.delitem(sys.modules, "d3gd.kernels.compiling", raising=False)
    assert kernels.Meter().compiled(kernels._AT_ONCE)
    meter, calls = kernels.Meter(), 0
    while not meter.compiled(kernels._AT_ONCE - 1):
        calls += 1
    assert calls == kernels._AFTER // (kernels._AT_ONCE - 1)


def test_the_way_depends_on_the_whole_network_not_on_a_block(monkeypatch):
    graph = d3gd.graphs.ring(6)
    asked = []
    for rule in ("large", "compiled"):
        monkeypatch.setattr(kernels.Meter, rule, lambda self, numbers: asked.append(numbers))
    net = Network(graph, d3gd.weights.uniform(graph))
    net.mix(net.a0, net.exchange(x=np.zeros((6, 5))).x)
    net.dot(np.zeros((6, 3)), net.exchange(x=np.zeros((6, 3))).x)
    assert asked == [graph.sources.size * 5, graph.sources.size * 3]


@given(st.lists(st.integers(1, 200), min_size=1, max_size=40))
def test_rectangles_cover_every_edge_once_with_at_most_twice_the_places(lengths):
    indptr = np.append(0, np.cumsum(lengths))
    agents, places = [], []
    for rows, where in rectangles(indptr):
        agents += np.arange(len(lengths))[rows].tolist()
        places += where.ravel().tolist()
    assert sorted(agents) == list(range(len(lengths)))
    assert len(places) <= 2 * indptr[-1]
    assert sorted(p for p in places if p < indptr[-1]) == list(range(indptr[-1]))


def test_rowwise_is_the_expression_itself_also_in_pieces_and_in_place(monkeypatch):
    rng = np.random.default_rng(0)
    x, y, scale = rng.normal(size=(50, 7)), rng.normal(size=(50, 7)), rng.random((50, 1)) + 1
    expected = x - 0.3 * y / scale
    monkeypatch.setattr(threads, "_DIRECT", 1)
    monkeypatch.setattr(threads, "_PIECE", 20)

    def f(x, y, scale):
        return x - 0.3 * y / scale

    assert np.array_equal(threads.rowwise(f, x, y, scale), expected)
    before = y.copy()
    assert threads.rowwise(f, x, y, scale, out=x) is x
    assert np.array_equal(x, expected)
    assert np.array_equal(y, before)


def test_a_part_that_fails_is_heard_of(monkeypatch):
    monkeypatch.setattr(threads, "_DIRECT", 1)
    with pytest.raises(ZeroDivisionError):
        threads.rowwise(lambda x: x / (1 // 0), np.ones((50, 3)))


def test_as_many_threads_as_the_user_allows():
    code = "from d3gd.kernels import threads; print(threads.cores())"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OMP_NUM_THREADS": "3"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert answer.stdout.strip() == "3"
    with threads.threads(1):
        assert threads.cores() == 1


def test_machine_code_is_kept_for_the_next_process_wherever_it_can_be(tmp_path):
    code = (
        "import numpy as np\nfrom d3gd.kernels.compiled import Compiled\n"
        "a, x, others = np.array([0.5, 0.5]), np.array([[1.0]]), np.array([[3.0]])\n"
        "print(Compiled(np.array([0, 2]), np.array([0, 1])).mix(a, x, others, a.dtype))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        answer = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300, check=True
        )
        assert answer.stdout.strip() == "[[2.]]"
        kept = sorted(path.name for path in tmp_path.rglob("*.nbc"))
        assert len(kept) == 1


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_one_pass_over_a_large_model_has_the_bits_of_mixing_first(compiled, dtype):
    graph, d = d3gd.graphs.exponential(5), 1 << 14

    def updated(rank, one_pass):
        net = Network(graph, d3gd.weights.metropolis(graph), transport=rank, dtype=dtype)
        draw = np.random.default_rng(rank.rank)
        x, g = (draw.normal(size=(1, d)).astype(dtype) for _ in range(2))
        v, y = draw.normal(size=(1, d)), np.full((1, 1), 0.3, dtype)
        sent = net.exchange(x=x).x
        if one_pass:
            assert net.wide(sent) is not None
        else:
            net.wide = lambda received: None
        descended = updates.mixed_descent(net, net.a0, sent, x, g, y, gamma=0.1, n=5)
        return descended, *updates.mixed_correction(net, net.a0, sent, x, x, v, rate=0.7)

    ways = [on_threads(5, lambda rank, way=way: updated(rank, way)) for way in (True, False)]
    for one, other in zip(*ways, strict=True):
        for found, wanted in zip(one, other, strict=True):
            assert found.dtype == wanted.dtype
            assert np.array_equal(found, wanted)
