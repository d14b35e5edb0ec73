"""Allowed numbers, counts and schedules, and the messages about anything else."""

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import d3gd
from d3gd import graphs, problems
from d3gd.conditions import Conditions
from d3gd.errors import D3GDError, GraphError, PatienceWarning, SettingsError
from d3gd.schedules import Decay, at
from d3gd.validation import (
    as_path,
    count,
    function,
    listed,
    mapping,
    normalize,
    one_of,
    patience,
    plain,
    positive,
    within,
)

HALVES = [0.5, np.float64(0.5), np.float32(0.5), np.float16(0.5), np.array(0.5)]
THREES = [3, np.int64(3), np.int8(3), np.uint64(3), np.array(3)]
NO_NUMBERS: list[Any] = ["0.5", None, True, np.True_, 0.5j, [0.5], np.array([0.5]), np.array("a"), object()]
NO_SIZES: list[Any] = [*NO_NUMBERS, float("nan"), float("inf"), -1.0, 10**400]


@pytest.mark.parametrize("half", HALVES)
def test_a_number_may_be_numpys(half: Any) -> None:
    positive("x", half)
    within("x", half, 0, 1)
    assert at(half, 3) == 0.5
    assert type(at(half, 3)) is float
    assert Decay(half, power=half, over=half) == Decay(0.5, power=0.5, over=0.5)


@pytest.mark.parametrize("three", THREES)
def test_a_count_may_be_numpys(three: Any) -> None:
    assert count("n", three, least=1) == 3
    assert type(count("n", three, least=1)) is int
    assert graphs.exponential(three).n == graphs.ring(three).n == 3


@pytest.mark.parametrize("value", NO_SIZES, ids=lambda value: type(value).__name__)
def test_anything_else_is_refused_in_words(value: Any) -> None:
    for check in (positive, lambda name, value: within(name, value, 0, 1)):
        with pytest.raises(SettingsError, match="x = "):
            check("x", value)
    with pytest.raises(SettingsError, match="Decay"):
        Decay(0.1, power=value)
    for make in (graphs.ring, graphs.complete, lambda n: graphs.grid(n, 2), lambda p: graphs.erdos_renyi(5, p)):
        with pytest.raises(GraphError):
            make(value)


@pytest.mark.parametrize("value", [np.array(["after", "before"]), 3, None, ["after"]], ids=repr)
def test_a_word_is_one_of_a_few(value: Any) -> None:
    with pytest.raises(SettingsError, match="choose 'after'"):
        one_of("combine", value, ("after", "before"))
    one_of("combine", np.str_("after"), ("after", "before"))


@pytest.mark.parametrize("value", [2**63, 10**5000, -(10**5000)], ids=["bits", "digits", "negative"])
def test_counts_fit_in_64_bits(value: int) -> None:
    with pytest.raises(SettingsError) as refused:
        count("n", value, least=0)
    assert len(str(refused.value)) < 200


def test_settings_keep_no_number_of_numpys() -> None:
    @dataclass(frozen=True)
    class Some:
        a: Any
        b: Any

    some = Some(np.float64(0.5), "text")
    normalize(some)
    assert (type(some.a), some.b) == (float, "text")
    conditions = Conditions(loss=np.float32(0.25), delay=np.int64(2), absences=[(np.int64(1), 2, np.int64(3))])
    assert conditions.describe() == Conditions(loss=0.25, delay=2, absences=[(1, 2, 3)]).describe()
    assert type(plain(conditions.loss)) is type(conditions.loss)


class Constant:
    def __call__(self, k: int) -> np.float32:
        return np.float32(0.125)


def halved(k: int, start: float) -> float:
    return start / 2**k


@pytest.mark.parametrize("schedule", [Constant(), functools.partial(halved, start=1.0), lambda k: np.array(0.125)])
def test_a_schedule_is_anything_that_can_be_called(schedule: Any) -> None:
    positive("step_size", schedule)
    assert at(schedule, 3) == 0.125
    assert type(at(schedule, 3)) is float


@pytest.mark.parametrize("value", [0.0, *NO_SIZES], ids=lambda value: type(value).__name__)
def test_a_schedule_gives_positive_numbers(value: Any) -> None:
    with pytest.raises(SettingsError, match="at iteration 7"):
        at(lambda k: value, 7)


def test_a_schedule_that_underflows_is_told_where_it_does() -> None:
    graph, problem = graphs.ring(3), problems.quadratic(agents=3, dim=2)
    with pytest.raises(SettingsError, match=r"gives 0\.0 at iteration"):
        d3gd.run(d3gd.DiDGD(step_size=lambda k: halved(k, start=1e-300)), graph, problem, iterations=100)


@pytest.mark.parametrize(
    "make",
    [
        lambda: graphs.ring(10**9),
        lambda: graphs.complete(10**6),
        lambda: graphs.erdos_renyi(10**6, 0.5),
        lambda: graphs.regular(10**6, 10**5),
        lambda: graphs.grid(10**5, 10**5),
        lambda: graphs.random_geometric(10**6, 0.9),
        lambda: graphs.Digraph.from_edges(10**12, [(0, 1)]),
        lambda: Conditions(delay=10**9),
    ],
)
def test_what_no_memory_holds_is_refused_before_it_is_made(make: Any) -> None:
    with pytest.raises(D3GDError):
        make()


def test_patience_is_asked_for_before_long_work_only() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        patience("a small plan", 1e9, "do less")
        graphs.ring(500).diameter()
    with pytest.warns(PatienceWarning, match=r"a large plan may take .* minutes; .* do less"):
        patience("a large plan", 1e14, "do less")


def test_long_plans_say_so_before_they_begin() -> None:
    from d3gd.steady.planner import Planner

    graph = graphs.ring(2000)
    a0 = d3gd.weights.uniform(graph).data
    planner = Planner(graph.n, graph.targets, graph.sources, a0)
    G = np.random.default_rng(0).standard_normal((graph.n, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # ends it where it would begin
        with pytest.raises(PatienceWarning, match=r"2,000 agents .*minutes"):
            planner.plan(a0, G, np.zeros(graph.n), 0.1, evaluations=200)


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (
            lambda: d3gd.topologies.fast_mixing(graphs.ring(6)),
            'choose rule = "fixed", or metropolis weights',
        ),
        (lambda: _run(d3gd.FROST(step_size=0.1)), 'choose rule = "fixed", or metropolis weights'),
        (lambda: _run(d3gd.PerronD3GD(step_size=0.1, rule="planned")), 'choose rule = "mixing"'),
        (lambda: d3gd.topologies.refined(graphs.ring(6), np.eye(6)), "choose metropolis weights"),
    ],
    ids=["fast mixing", "mixing", "planned", "refined"],
)
def test_a_warning_advises_what_is_not_being_done(plan: Any, words: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("d3gd.validation.PATIENCE", 0.0)
    with pytest.warns(PatienceWarning) as found:
        plan()
    assert str(found[-1].message).endswith(f"to save that, {words}")


def _run(method: Any) -> None:
    d3gd.run(method, graphs.ring(6), d3gd.problems.quadratic(agents=6, dim=2), iterations=40, metrics={})


@pytest.mark.parametrize(
    "value", ["no", 0.5, 2, None, np.array([True, False]), object()], ids=lambda v: type(v).__name__
)
def test_a_flag_is_true_or_false(value: Any) -> None:
    for make in (
        lambda: d3gd.D3GD(step_size=0.1, chain_rule=value),
        lambda: d3gd.DiDGD(step_size=0.1, averaged=value),
        lambda: Conditions(biased=value),
    ):
        with pytest.raises(SettingsError, match="True or False"):
            make()
    with pytest.raises(GraphError):
        graphs.grid(2, 2, torus=value)
    assert graphs.grid(2, 3, torus=np.True_).link_count == graphs.grid(2, 3, torus=True).link_count


def test_single_precision_of_a_setting_does_not_spread() -> None:
    fifth = np.float32(0.2)
    assert type(d3gd.D3GD(step_size=0.1, anchor=fifth).anchor) is float
    one, other = (
        problems.quadratic(agents=2, dim=3, conditioning=c) for c in (np.float32(5.3), float(np.float32(5.3)))
    )
    assert np.array_equal(one.Q, other.Q)


@pytest.mark.parametrize("graph", [None, "ring", d3gd.Digraph, [], np.eye(4)], ids=lambda value: type(value).__name__)
def test_what_is_no_graph_is_refused_in_one_line(graph: Any) -> None:
    problem = problems.quadratic(agents=4, dim=3)
    for call in (
        d3gd.weights.metropolis,
        d3gd.weights.uniform,
        d3gd.weights.lazy,
        lambda graph: d3gd.weights.check(np.eye(4), graph),
        lambda graph: d3gd.topologies.refined(graph, np.eye(4)),
        lambda graph: d3gd.theory.optimal_weights(graph, np.eye(4)),
        lambda graph: d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, iterations=1),
    ):
        with pytest.raises(GraphError) as refused:
            call(graph)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "values",
    [[[1], [1, 2]], {}, "text", None, 1j * np.eye(4), np.eye(4).astype("M8[s]"), np.eye(4).astype(str), [None] * 4],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_array_of_numbers_is_refused(values: Any) -> None:
    graph, problem = graphs.ring(4), problems.quadratic(agents=4, dim=4)
    method, even = d3gd.DiDGD(step_size=0.1), np.full(4, 0.25)
    A = d3gd.weights.metropolis(graph)
    for call in (
        lambda: d3gd.run(method, graph, problem, iterations=1, x0=[values, values]),
        lambda: d3gd.theory.lyapunov(A, values, problem, 0.1, 1.0),
        lambda: d3gd.theory.design_function(A, values, np.eye(4), even, 0.1, even),
        lambda: d3gd.theory.design_gradient(A, np.eye(4), np.eye(4), values, 0.1, even),
        lambda: d3gd.theory.steady_disagreement(A, values, 0.1),
        lambda: problems.Quadratic(values, np.eye(4)),
        lambda: problems.sigmoid_classification(agents=4, alpha=values),
    ):
        with pytest.raises(D3GDError):
            call()


@pytest.mark.parametrize("absences", [3, None, np.array(3), [[1], [1, 2]], "text"], ids=str)
def test_absences_are_triples(absences: Any) -> None:
    with pytest.raises(SettingsError, match="absences"):
        Conditions(absences=absences)


def test_a_long_message_keeps_its_two_ends_and_its_type():
    error = SettingsError(f"method {'x' * 3000!r}: it must be known")
    assert type(error) is SettingsError
    assert len(str(error)) < 1100
    assert str(error).startswith("method 'xxx")
    assert str(error).endswith("it must be known")


@pytest.mark.parametrize("value", [3, np.array(3), "abc", b"abc", {"a": 1}, {}, None], ids=repr)
def test_a_list_is_no_number_text_or_mapping(value: Any) -> None:
    with pytest.raises(SettingsError, match="names = "):
        listed("names", value, "names")
    assert listed("names", iter("ab"), "names") == listed("names", np.array(["a", "b"]), "names") == ["a", "b"]


@pytest.mark.parametrize("value", [0, "", [], (), False, np.array(3)], ids=repr)
def test_an_empty_value_is_no_mapping_and_no_path(value: Any) -> None:
    with pytest.raises(SettingsError, match="target = "):
        mapping("target", value, "metrics to levels")
    with pytest.raises(D3GDError, match="out = "):
        as_path("out", value)


def test_a_function_takes_as_many_arguments_as_it_is_given() -> None:
    for fitting in (
        lambda k: k,
        lambda *all: all,
        lambda k, more=1: k,
        functools.partial(max, 1),
        Constant(),
        float,
        max,
    ):
        function("schedule", fitting, "the iteration")
    for other in (lambda: 1, lambda a, b: 1, lambda *, k: 1, Constant, 3, None):
        with pytest.raises(SettingsError, match=r"schedule .*give a function of the iteration"):
            function("schedule", other, "the iteration")


def test_wrong_functions_and_empty_values_are_refused_where_they_are_given() -> None:
    graph, problem, method = graphs.ring(3), problems.quadratic(agents=3, dim=2), d3gd.DiDGD(step_size=0.1)
    wrong: list[dict[str, Any]] = [
        {"metrics": np.array(3)},
        {"metrics": {"mine": lambda: 3}},
        {"target": []},
        {"target": 0},
        {"callbacks": [lambda: None]},
        {"callbacks": {}},
        {"notes": ""},
        {"out": ""},
        {"out": 3},
        {"resume": "no"},
        {"transport": 0},
    ]
    for options in wrong:
        with pytest.raises(D3GDError, match=next(iter(options))[:-1]):
            d3gd.run(method, graph, problem, **{"iterations": 2, **options})
    for factory in (lambda: problem, problems.Quadratic):
        with pytest.raises(D3GDError, match="a list of agents"):
            d3gd.run(method, graph, factory, iterations=2)
    compared: list[dict[str, Any]] = [
        {"metric": {}},
        {"metric": ""},
        {"methods": []},
        {"only": "DiDGD"},
        {"only": [3]},
        {"steps": {0.1: 1}},
        {"graph": lambda: graph},
        {"problem": lambda: problem},
        {"weights": lambda: None},
    ]
    for options in compared:
        given: dict[str, Any] = {"graph": graph, "problem": problem, "iterations": 2, "seeds": 1, "jobs": 1, **options}
        with pytest.raises(D3GDError, match=next(iter(options))):
            d3gd.compare(**given)
    for make in (lambda f: d3gd.DiDGD(step_size=f), lambda f: Conditions(graphs=f)):
        with pytest.raises(SettingsError, match="give a function of the iteration"):
            make(lambda: 0.1)
    with pytest.raises(D3GDError, match="an agent and its model"):
        problems.from_functions(agents=3, dim=2, gradient=lambda x: x)
