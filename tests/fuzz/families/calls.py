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


def _new_folder() -> Path:
    return next(Path(f"run{i}") for i in range(99) if not Path(f"run{i}").exists())


@functools.cache
def calls() -> dict[str, Call]:
    """All of them, by name."""
    g, p, d, t, w, th = d3gd.graphs, d3gd.problems, d3gd.data, d3gd.topologies, d3gd.weights, d3gd.theory
    classes = {"alpha": 0.5, "seed": 1, "classes": 3, "features": 2, "samples": 6}
    labelled = {"agents": N, "alpha": 0.5, "seed": 1, "regularization": 0.01, "batch": 2, "test_fraction": 0.2}
    X3 = _DRAW.standard_normal((N, 5, 2))
    y3 = np.arange(N * 5).reshape(N, 5) % 3
    parts = [(SAMPLES[i::N], LABELS[i::N]) for i in range(N)]
    settings = {"iterations": 4, "every": 2, "seed": 1, "checkpoint_every": 2}
    found = {
        "graphs.ring": Call(g.ring, {"n": N}),
        "graphs.complete": Call(g.complete, {"n": N}),
        "graphs.exponential": Call(g.exponential, {"n": N}),
        "graphs.star": Call(g.star, {"n": N}),
        "graphs.grid": Call(g.grid, {"rows": 2, "columns": 3, "torus": True}),
        "graphs.erdos_renyi": Call(g.erdos_renyi, {"n": N, "p": 0.5, "seed": 1}),
        "graphs.random_geometric": Call(g.random_geometric, {"n": N, "radius": 0.8, "spread": 0.5, "seed": 1}),
        "graphs.regular": Call(g.regular, {"n": N, "degree": 2, "seed": 1}),
        "Digraph": Call(d3gd.Digraph, {"n": N, "indptr": GRAPH.indptr, "sources": GRAPH.sources, "labels": tuple("abcd")}),
        "Digraph.from_edges": Call(d3gd.Digraph.from_edges, {"n": N, "edges": GRAPH.edges, "labels": tuple("abcd")}),
        "Digraph.hops_from": Call(GRAPH.hops_from, {"agent": 1}),
        "Digraph.matrix": Call(GRAPH.matrix, {"values": WEIGHTS.data}),
        "weights.metropolis": Call(w.metropolis, {"graph": GRAPH}),
        "weights.uniform": Call(w.uniform, {"graph": GRAPH}),
        "weights.lazy": Call(w.lazy, {"graph": GRAPH, "stay": 0.25}),
        "weights.check": Call(w.check, {"matrix": WEIGHTS, "graph": GRAPH}, 3),
        "weights.perron": Call(w.perron, {"matrix": WEIGHTS}, 2),
        "weights.spectral_gap": Call(w.spectral_gap, {"matrix": WEIGHTS}, 2),
        "problems.quadratic": Call(
            p.quadratic, {"agents": N, "dim": 3, "seed": 1, "conditioning": 5.0, "heterogeneity": 0.5, "block": [0, 2]}, 2
        ),
        "problems.sigmoid_classification": Call(
            p.sigmoid_classification,
            {"agents": N, **classes, "regularization": 0.01, "batch": 2, "test_samples": 5, "block": [1, 2]}, 3,
        ),
        "problems.mixture_classification": Call(
            p.mixture_classification,
            {"agents": N, **classes, "regularization": 0.01, "batch": 2, "test_samples": 5, "block": [1, 2]}, 2,
        ),
        "problems.softmax_regression": Call(
            p.softmax_regression,
            {"parts": parts, "regularization": 0.01, "batch": 2, "seed": 1, "test": parts[0], "classes": 3, "agent_ids": [0, 1, 2, 3]}, 2,
        ),
        "problems.label_skewed_classification": Call(p.label_skewed_classification, {"X": SAMPLES, "y": LABELS, **labelled}, 2),
        "problems.digits_classification": Call(p.digits_classification, labelled, 0.3),
        "problems.Quadratic": Call(p.Quadratic, {"Q": PROBLEM.Q, "b": PROBLEM.b}),
        "problems.SigmoidClassification": Call(
            p.SigmoidClassification, {"X": X3, "y": y3, "classes": 3, "regularization": 0.01, "batch": 2, "seed": 1}
        ),
        "problems.Quadratic.restrict": Call(PROBLEM.restrict, {"agents": [0, 2]}),
        "data.dirichlet_mixture": Call(d.dirichlet_mixture, {"agents": N, **classes, "block": [0, 3]}),
        "data.hold_out": Call(d.hold_out, {"X": SAMPLES, "y": LABELS, "fraction": 0.25, "seed": 1}),
        "data.split_by_label": Call(d.split_by_label, {"X": SAMPLES, "y": LABELS, "agents": N, "alpha": 0.5, "seed": 1}),
        "data.read_table": Call(d.read_table, {"path": "nowhere.csv", "label": "label"}, 0.5),
        "topologies.ac_gt": Call(t.ac_gt, {"graph": BOTH_WAYS, "values": X, "prune": 0.5, "sharpness": 2.0, "seed": 1}),
        "topologies.fastest_mixing": Call(t.fastest_mixing, {"graph": BOTH_WAYS}, 0.5),
        "topologies.certified_mixing": Call(t.certified_mixing, {"graph": BOTH_WAYS}, 0.5),
        "topologies.refined": Call(
            t.refined, {"graph": GRAPH, "data": G, "start": WEIGHTS, "combine": "after", "anchor": 0.05, "least": 0.8}
        ),
        "topologies.stl_fw": Call(t.stl_fw, {"proportions": SHARES, "budget": 3, "lam": 0.1}),
        "topologies.stl_fw_objective": Call(
            t.stl_fw_objective, {"weights": np.full((N, N), 1 / N), "proportions": SHARES, "lam": 0.1}
        ),
        "theory.constants": Call(th.constants, {"A": WEIGHTS}),
        "theory.step_bounds": Call(th.step_bounds, {"A": WEIGHTS, "L": 1.0, "C0": 0.5}),
        "theory.lyapunov": Call(
            th.lyapunov, {"A": WEIGHTS, "X": X, "problem": PROBLEM, "step_size": 0.1, "L": 1.0, "factor": 3.0}
        ),
        "theory.design_function": Call(
            th.design_function, {"A": WEIGHTS, "X": X, "G": G, "y": np.full(N, 0.25), "step_size": 0.1, "pi": np.full(N, 0.25)}
        ),
        "theory.steady_deviation": Call(th.steady_deviation, {"A": WEIGHTS, "G": G, "step_size": 0.1, "combine": "after"}),
        "theory.optimal_weights": Call(
            th.optimal_weights, {"graph": GRAPH, "G": G, "step_size": 0.1, "combine": "after", "start": WEIGHTS, "least": 0.1}
        ),
        "schedules.Decay": Call(run_falling, {"start": 0.1, "power": 0.5, "over": 10.0}, 2),
        "Conditions": Call(
            run_under,
            {"loss": 0.1, "links": 0.9, "period": 2, "pause": 0.1, "back": 0.5, "absences": [(1, 2, 3)], "delay": 1,
             "delays": "each link", "graphs": [GRAPH]}, 5,
        ),
        "transports.connect": Call(d3gd.transports.connect, {"name": "alone", "timeout": 60.0}, 0.5),
        "Result.load": Call(d3gd.Result.load, {"folder": "nowhere"}, 0.5),
        "run": Call(run, {**settings, "x0": X, "weights": WEIGHTS, "metrics": ["loss"], "dtype": "float32"}, 6),
        "run(out=)": Call(run_into, {**settings, "x0": X, "weights": WEIGHTS, "notes": {"a": 1}}, 5),
        "run(objects)": Call(
            run, {"algorithm": d3gd.DiDGD(step_size=0.1), "graph": GRAPH, "problem": PROBLEM, "iterations": 4,
                  "conditions": d3gd.Conditions(links=0.9, biased=True)}, 3,
        ),
        "run(target=)": Call(run_to, {"level": 0.5}, 2),
        "compare": Call(compare, {"iterations": 4, "seeds": 1, "steps": [0.1], "target": 1.0, "metric": "loss"}, 0.3),
    }  # fmt: skip
    switches = {"rule", "combine", "perron"}
    for name, method in catalogue.methods().items():
        parameters = inspect.signature(method).parameters
        given = {key: value.default for key, value in parameters.items() if key != "step_size"}
        words = {key: value for key, value in given.items() if key in switches}
        found[name] = Call(method_run(method), {"step_size": 0.05, **given, **words}, 1 + len(given) / 2)
    return found
