"""A good call of everything public, for attacks to spoil one argument of."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import d3gd
from d3gd.algorithms import catalogue

N = 4
GRAPH = d3gd.graphs.erdos_renyi(N, 0.7, seed=2)
BOTH_WAYS = d3gd.graphs.grid(2, 2)
PROBLEM = d3gd.problems.quadratic(agents=N, dim=3)
WEIGHTS = d3gd.weights.metropolis(GRAPH)
_DRAW = np.random.default_rng(0)
X, G = _DRAW.standard_normal((N, 3)), _DRAW.standard_normal((N, 3))
SAMPLES, LABELS = _DRAW.standard_normal((20, 2)), np.arange(20) % 3
_GIVEN: dict[str, dict[str, Any]] = {"PULMDGD": {"rounds": 2}}  # for settings whose default is None
SHARES = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]])


class Call(NamedTuple):
    """A function, and arguments that it takes."""

    function: Callable[..., Any]
    arguments: dict[str, Any]
    weight: float = 1.0


def same_signature(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a wrapper be called as what it wraps."""

    def decorate(wrapper: Callable[..., Any]) -> Callable[..., Any]:
        wrapper.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        return wrapper

    return decorate


def method_run(method: Any) -> Callable[..., Any]:
    """A function of a method's settings that runs it, into a folder at that: settings are written there."""

    @same_signature(method)
    def ran(**settings: Any) -> Any:
        made = method(**settings)
        graph = BOTH_WAYS if made.needs == "undirected links" else GRAPH
        return d3gd.run(made, graph, PROBLEM, iterations=4, every=2, out=_new_folder())

    return ran


def run(**settings: Any) -> Any:
    """Run with one of the arguments spoilt, into a folder or not."""
    graph, problem = settings.pop("graph", GRAPH), settings.pop("problem", PROBLEM)
    algorithm = settings.pop("algorithm", d3gd.DiDGD(step_size=0.1))
    return d3gd.run(algorithm, graph, problem, **settings)


def run_to(level: Any) -> Any:
    return run(iterations=4, every=1, target={"disagreement": level})


def run_at(out: Any) -> Any:
    return run(iterations=4, out=out)


def run_into(**settings: Any) -> Any:
    return run(**settings, out=_new_folder())


def run_under(**settings: Any) -> Any:
    """Run under conditions."""
    conditions = d3gd.Conditions(**settings, biased=True)
    return d3gd.run(d3gd.DiDGD(step_size=0.1, averaged=True), GRAPH, PROBLEM, iterations=4, conditions=conditions)


def run_falling(**settings: Any) -> Any:
    return run(algorithm=d3gd.DiDGD(step_size=d3gd.schedules.Decay(**settings)), iterations=4, out=_new_folder())


def compare(**settings: Any) -> Any:
    return d3gd.compare(GRAPH, PROBLEM, only=["DiDGD"], jobs=1, **settings).rows


def _largest(snapshot: Any) -> float:
    return float(abs(snapshot.x).max())


def _looked(snapshot: Any) -> None:
    return None


def _mine(step_size: float) -> Any:
    return d3gd.DiDGD(step_size=step_size, averaged=True)


def _new_folder() -> Path:
    return next(Path(f"run{i}") for i in range(99) if not Path(f"run{i}").exists())


def good(function: Callable[..., Any], weight: float = 1.0, /, **arguments: Any) -> Call:
    """A call with these arguments; the weight says how often it is attacked."""
    return Call(function, arguments, weight)


@functools.cache
def calls() -> dict[str, Call]:
    """All of them, by name."""
    return _networks() | _problems() | _analysis() | _runs() | _methods()


def _networks() -> dict[str, Call]:
    g, w, digraph = d3gd.graphs, d3gd.weights, d3gd.Digraph
    names = tuple("abcd")
    return {
        "graphs.ring": good(g.ring, n=N),
        "graphs.complete": good(g.complete, n=N),
        "graphs.exponential": good(g.exponential, n=N),
        "graphs.star": good(g.star, n=N),
        "graphs.grid": good(g.grid, rows=2, columns=3, torus=True),
        "graphs.erdos_renyi": good(g.erdos_renyi, n=N, p=0.5, seed=1),
        "graphs.random_geometric": good(g.random_geometric, n=N, radius=0.8, spread=0.5, seed=1),
        "graphs.regular": good(g.regular, n=N, degree=2, seed=1),
        "Digraph": good(digraph, n=N, indptr=GRAPH.indptr, sources=GRAPH.sources, labels=names),
        "Digraph.from_edges": good(digraph.from_edges, n=N, edges=GRAPH.edges, labels=names),
        "Digraph.hops_from": good(GRAPH.hops_from, agent=1),
        "Digraph.matrix": good(GRAPH.matrix, values=WEIGHTS.data),
        "weights.metropolis": good(w.metropolis, graph=GRAPH),
        "weights.balanced": good(w.balanced, graph=GRAPH),
        "weights.uniform": good(w.uniform, graph=GRAPH),
        "weights.lazy": good(w.lazy, graph=GRAPH, stay=0.25),
        "weights.check": good(w.check, 3, matrix=WEIGHTS, graph=GRAPH),
        "weights.perron": good(w.perron, 2, matrix=WEIGHTS),
        "weights.spectral_gap": good(w.spectral_gap, 2, matrix=WEIGHTS),
    }


def _problems() -> dict[str, Call]:
    p, d = d3gd.problems, d3gd.data
    drawn = {"agents": N, "alpha": 0.5, "seed": 1, "classes": 3, "features": 2, "samples": 6, "block": [1, 2]}
    learned = {"regularization": 0.01, "batch": 2}
    divided = {"agents": N, "alpha": 0.5, "seed": 1, "test_fraction": 0.2, **learned}
    parts = [(SAMPLES[i::N], LABELS[i::N]) for i in range(N)]
    cube, labels = SAMPLES.reshape(N, 5, 2), LABELS.reshape(N, 5)
    return {
        "problems.quadratic": good(
            p.quadratic, 2, agents=N, dim=3, seed=1, conditioning=5.0, heterogeneity=0.5, block=[0, 2]
        ),
        "problems.sigmoid_classification": good(p.sigmoid_classification, 3, test_samples=5, **drawn, **learned),
        "problems.mixture_classification": good(p.mixture_classification, 2, test_samples=5, **drawn, **learned),
        "problems.softmax_regression": good(
            p.softmax_regression, 2, parts=parts, seed=1, test=parts[0], classes=3, agent_ids=[0, 1, 2, 3], **learned
        ),
        "problems.label_skewed_classification": good(p.label_skewed_classification, 2, X=SAMPLES, y=LABELS, **divided),
        "problems.digits_classification": good(p.digits_classification, 0.3, **divided),
        "problems.from_functions": good(
            p.from_functions, agents=N, dim=3, gradient=lambda i, x: x - i, loss=lambda i, x: float(x @ x)
        ),
        "problems.Quadratic": good(p.Quadratic, Q=PROBLEM.Q, b=PROBLEM.b),
        "problems.SigmoidClassification": good(p.SigmoidClassification, X=cube, y=labels, classes=3, seed=1, **learned),
        "problems.Quadratic.restrict": good(PROBLEM.restrict, agents=[0, 2]),
        "data.dirichlet_mixture": good(d.dirichlet_mixture, **drawn),
        "data.hold_out": good(d.hold_out, X=SAMPLES, y=LABELS, fraction=0.25, seed=1),
        "data.split_by_label": good(d.split_by_label, X=SAMPLES, y=LABELS, agents=N, alpha=0.5, seed=1),
        "data.read_idx": good(d.read_idx, 0.5, images="nowhere", labels="nowhere", sha256=["00", "00"]),
        "data.read_libsvm": good(d.read_libsvm, 0.5, path="nowhere", features=3, sha256="00"),
        "data.read_cifar10": good(d.read_cifar10, 0.5, paths=["nowhere"], sha256=["00"]),
        "data.read_images": good(d.read_images, 0.5, folder="nowhere", size=(2, 2)),
        "data.read_table": good(d.read_table, 0.5, path="nowhere.csv", label="label"),
    }


def _analysis() -> dict[str, Call]:
    t, th = d3gd.topologies, d3gd.theory
    even, moving = np.full(N, 1 / N), {"step_size": 0.1, "combine": "after"}
    design = {"A": WEIGHTS, "X": X, "G": G, "y": even, "step_size": 0.1, "pi": even}
    return {
        "topologies.one_peer_exponential": good(d3gd.topologies.one_peer_exponential, 0.5, n=8),
        "topologies.base_graph": good(d3gd.topologies.base_graph, 0.5, n=6, k=1),
        "topologies.equi_one_peer": good(d3gd.topologies.equi_one_peer, 0.5, n=6, length=4, ratio=0.5, seed=1),
        "topologies.equi_static": good(d3gd.topologies.equi_static, 0.5, n=6, degree=2, undirected=True, seed=1),
        "topologies.union": good(d3gd.topologies.union, 0.5, sequence=d3gd.topologies.one_peer_exponential(4)),
        "topologies.ac_gt": good(t.ac_gt, graph=BOTH_WAYS, values=X, prune=0.5, sharpness=2.0, seed=1),
        "topologies.fast_mixing": good(t.fast_mixing, graph=GRAPH),
        "topologies.fastest_mixing": good(t.fastest_mixing, 0.5, graph=BOTH_WAYS),
        "topologies.certified_mixing": good(t.certified_mixing, 0.5, graph=BOTH_WAYS),
        "topologies.refined": good(
            t.refined, graph=GRAPH, data=G, start=WEIGHTS, combine="after", anchor=0.05, least=0.8
        ),
        "topologies.stl_fw": good(t.stl_fw, proportions=SHARES, budget=3, lam=0.1),
        "topologies.stl_fw_objective": good(
            t.stl_fw_objective, weights=np.full((N, N), 1 / N), proportions=SHARES, lam=0.1
        ),
        "theory.constants": good(th.constants, A=WEIGHTS),
        "theory.step_bounds": good(th.step_bounds, A=WEIGHTS, L=1.0, C0=0.5),
        "theory.lyapunov": good(th.lyapunov, A=WEIGHTS, X=X, problem=PROBLEM, step_size=0.1, L=1.0, factor=3.0),
        "theory.design_function": good(th.design_function, 0.5, **design),
        "theory.design_gradient": good(th.design_gradient, 0.5, **design),
        "theory.steady_deviation": good(th.steady_deviation, 0.5, A=WEIGHTS, G=G, **moving),
        "theory.steady_disagreement": good(th.steady_disagreement, 0.5, A=WEIGHTS, G=G, **moving),
        "theory.steady_gradient": good(th.steady_gradient, 0.5, A=WEIGHTS, G=G, **moving),
        "theory.optimal_weights": good(th.optimal_weights, 0.4, graph=GRAPH, G=G, start=WEIGHTS, least=0.1, **moving),
    }


def _runs() -> dict[str, Call]:
    method, often = d3gd.DiDGD(step_size=0.1), {"iterations": 4, "every": 2, "seed": 1, "checkpoint_every": 2}
    hard = {"loss": 0.1, "links": 0.9, "pause": 0.1, "back": 0.5, "delay": 1, "delays": "each link"}
    conditions = d3gd.Conditions(links=0.9, biased=True)
    return {
        "schedules.Decay": good(run_falling, 2, start=0.1, power=0.5, over=10.0),
        "Conditions": good(run_under, 5, **hard, graphs=[GRAPH], period=2, absences=[(1, 2, 3)]),
        "transports.connect": good(d3gd.transports.connect, 0.5, name="alone", timeout=60.0),
        "Result.load": good(d3gd.Result.load, 0.5, folder="nowhere"),
        "run": good(run, 6, x0=X, weights=WEIGHTS, metrics=["loss"], dtype="float32", **often),
        "run(out=)": good(run_into, 5, x0=X, weights=WEIGHTS, notes={"a": 1}, **often),
        "run(objects)": good(
            run, 3, algorithm=method, graph=GRAPH, problem=PROBLEM, iterations=4, conditions=conditions
        ),
        "run(folder)": good(run_at, 0.5, out="run"),
        "run(target=)": good(run_to, 2, level=0.5),
        "run(options)": good(
            run,
            3,
            iterations=4,
            metrics={"mine": _largest},
            target={"mine": 0.0},
            callbacks=[_looked],
            resume=False,
            progress=False,
            transport=d3gd.transports.connect("alone"),
        ),
        "compare(objects)": good(
            d3gd.compare,
            0.5,
            graph=GRAPH,
            problem=PROBLEM,
            weights=WEIGHTS,
            conditions=conditions,
            methods={"mine": _mine},
            only=["mine"],
            budget_bytes=5_000,
            budget_gradients=5,
            seeds=1,
            steps=[0.1],
            quick=False,
            jobs=1,
            out="compared",
        ),
        "compare(functions)": good(
            d3gd.compare,
            0.5,
            graph=lambda seed: GRAPH,
            problem=lambda seed: PROBLEM,
            weights=d3gd.weights.metropolis,
            only=["DiDGD"],
            iterations=4,
            seeds=1,
            steps=[0.1],
            jobs=1,
        ),
        "check_method": good(d3gd.check_method, 0.3, method=method, graph=GRAPH, problem=PROBLEM, show=False),
        "check_problem": good(d3gd.check_problem, problem=PROBLEM, seed=1, show=False),
        "plots.plot_runs": good(
            d3gd.plots.plot_runs, 0.3, results={"a": run(iterations=4)}, path="a.svg", metrics=["loss"], x="bytes"
        ),
        "compare": good(compare, 0.3, iterations=4, seeds=1, steps=[0.1], target=1.0, metric="loss"),
    }


def _methods() -> dict[str, Call]:
    found = {}
    for name, method in catalogue.methods().items():
        parameters = inspect.signature(method).parameters
        given = {key: value.default for key, value in parameters.items() if key != "step_size"} | _GIVEN.get(name, {})
        found[name] = good(method_run(method), 1 + len(given) / 2, step_size=0.05, **given)
    return found
