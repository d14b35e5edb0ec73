"""Settings files: every key checked, every message naming key, value and what is allowed."""

import inspect
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import d3gd
from d3gd import D3GD, graphs, topologies
from d3gd.algorithms import catalogue
from d3gd.config.experiment import load
from d3gd.config.schema import keys_of, to_toml, words
from d3gd.config.tables import KINDS
from d3gd.errors import GraphError, SettingsError
from d3gd.schedules import Decay

GOOD = {
    "": "iterations = 10",
    "graph": 'kind = "ring"\nn = 4',
    "problem": 'kind = "quadratic"\ndim = 2',
    "algorithm": 'kind = "D3GD"\nstep_size = 0.1',
}


def write(folder: Path, **changes: str) -> Path:
    content = {**GOOD, **{key.replace("top", ""): value for key, value in changes.items()}}
    text = content.pop("") + "\n" + "".join(f"[{name}]\n{body}\n" for name, body in content.items() if body)
    (folder / "experiment.toml").write_text(text)
    return folder / "experiment.toml"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # Unknown keys: the key, the table, the closest, the allowed
        (
            {"algorithm": 'kind = "D3GD"\nstepsize = 0.1'},
            "experiment.toml: [algorithm] key 'stepsize' is not known; did you mean 'step_size'? choose from "
            "step_size, refine_step, anchor, rule, chain_rule, participation, perron, every, steered, outer, "
            "compress, damping, optimizer",
        ),
        (
            {"algorithm": 'kind = "D3GD"\nstep_size = 1\noptimizer = "adam"'},
            "experiment.toml: [algorithm] optimizer: found 'adam'; write optimizer = "
            '{kind = "Momentum", momentum = 0.9}',
        ),
        (
            {"algorithm": 'kind = "D3GD"\nstep_size = 1\noptimizer = {kind = "Momentum", momentum = "high"}'},
            'experiment.toml: [algorithm] optimizer: momentum = "high": it must be a number',
        ),
        (
            {"algorithm": 'kind = "D3GD"\nstep_size = 1\nevery = 2.5'},
            "experiment.toml: [algorithm] every = 2.5: it must be a whole number",
        ),
        (
            {"graph": 'kind = "rign"\nn = 4'},
            "experiment.toml: [graph] kind 'rign' is not known; did you mean 'ring'? choose from "
            "erdos_renyi, ring, exponential, grid, random_geometric, regular, complete, star, edges",
        ),
        (
            {"top": "iteration = 10"},
            "experiment.toml: key 'iteration' is not known; did you mean 'iterations'? choose from "
            "iterations, every, seed, target, checkpoint_every, dtype, record_weights, metrics, [graph], [weights], "
            "[problem], [algorithm], [conditions], [privacy]",
        ),
        (
            {"algorithm": 'kind = "D3GD"\nstep_size = {begin = 1}'},
            "experiment.toml: [algorithm] step_size: key 'begin' is not known; choose from start, power, over",
        ),
        ({"problem": "kind = [1]"}, "experiment.toml: [problem] kind '[1]' is not known; choose from "
         "sigmoid_classification, digits_classification, quadratic, softmax, mixture_classification"),
        # Wrong types: the key, the value found, the type needed
        ({"top": 'iterations = "ten"'}, 'experiment.toml: iterations = "ten": it must be a whole number'),
        ({"top": "iterations = 10.5"}, "experiment.toml: iterations = 10.5: it must be a whole number"),
        ({"graph": 'kind = "ring"\nn = true'}, "experiment.toml: [graph] n = true: it must be a whole number"),
        (
            {"algorithm": 'kind = "D3GD"\nstep_size = "small"'},
            'experiment.toml: [algorithm] step_size = "small": it must be a number or a table such as '
            "{start = 0.1, power = 0.5, over = 100}",
        ),
        (
            {"algorithm": 'kind = "D3GD"\nstep_size = 1\nrule = "globl"'},
            'experiment.toml: [algorithm] rule = "globl": it must be one of "decentralized", "global", "exact"; '
            "did you mean 'global'?",
        ),
        (
            {"problem": 'kind = "sigmoid_classification"\nalpha = ["a"]'},
            'experiment.toml: [problem] alpha = ["a"]: it must be a number or a list of numbers',
        ),
        (
            {"graph": 'kind = "edges"\nedges = [1, 2]'},
            "experiment.toml: [graph] edges = [1, 2]: it must be a list of [source, target] pairs",
        ),
        (
            {"top": 'iterations = 1\nmetrics = "loss"'},
            'experiment.toml: metrics = "loss": it must be a list of texts in quotes',
        ),
        ({"top": "iterations = 1\ntarget = 3"}, "experiment.toml: target = 3: it must be a table of numbers"),
        ({"top": "iterations = 2020-01-01"}, "experiment.toml: iterations = 2020-01-01: it must be a whole number"),
        # Missing keys
        ({"top": ""}, "experiment.toml: iterations is missing; add iterations = a whole number"),
        ({"graph": 'kind = "ring"'}, "experiment.toml: [graph] n is missing; add n = a whole number"),
        ({"problem": "dim = 3"}, "experiment.toml: [problem] kind is missing; choose from sigmoid_classification, "
         "digits_classification, quadratic, softmax, mixture_classification"),
        (
            {"algorithm": ""},
            "experiment.toml: [algorithm] is missing; write [algorithm] and under it kind = ..., one of "
            f"{', '.join(catalogue.methods())}",
        ),
    ],
)  # fmt: skip
def test_messages(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as error:
        load(write(tmp_path, **changes))
    assert str(error.value) == message


def test_a_table_builds_what_its_kind_builds(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        top="iterations = 10\nseed = 3",
        graph='kind = "erdos_renyi"\nn = 6\np = 0.5',
        weights='kind = "lazy"\nstay = 0.25',
        algorithm='kind = "D3GD"\nstep_size = {start = 0.1, power = 0.5}\nanchor = 0',
    )
    algorithm, graph, problem, matrix = load(path).build()
    assert algorithm == D3GD(step_size=Decay(0.1, power=0.5), anchor=0.0)
    assert graph.edges.tolist() == graphs.erdos_renyi(6, 0.5, seed=3).edges.tolist()
    assert problem.describe() == {**problem.describe(), "kind": "quadratic", "agents": 6, "dim": 2, "seed": 3}
    assert matrix.diagonal().min() >= 0.25


def test_weights_may_be_the_fastest_mixing_ones(tmp_path: Path) -> None:
    path = write(tmp_path, graph='kind = "star"\nn = 4', weights='kind = "fastest_mixing"')
    graph, matrix = load(path).network()
    assert np.array_equal(matrix.data, topologies.fastest_mixing(graph).data)
    with pytest.raises(GraphError, match=r"experiment.toml: \[weights\] fastest mixing needs undirected links"):
        load(write(tmp_path, weights='kind = "fastest_mixing"')).network()


def test_the_text_reads_back_as_the_same_experiment(tmp_path: Path) -> None:
    first = load(write(tmp_path, top="iterations = 10\ntarget = {loss = 1e-5}\nmetrics = ['loss']"), iterations=7)
    (tmp_path / "experiment.toml").write_text(first.text)
    second = load(tmp_path / "experiment.toml")
    assert second == first
    assert second.settings["iterations"] == 7


# Line ends within a text are kept; lone surrogates cannot be in a file at all.
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=10,
)


@given(values)
def test_values_survive_being_written_and_read(value: Any) -> None:
    assert tomllib.loads(f"value = {to_toml(value)}")["value"] == value


@pytest.mark.parametrize(("part", "kind"), [(part, kind) for part, kinds in KINDS.items() for kind in kinds])
def test_every_kind_can_be_described_in_words(part: str, kind: str) -> None:
    keys = keys_of(KINDS[part][kind])
    assert all(words(hint) for hint, _ in keys.values())
    hidden = set(inspect.signature(KINDS[part][kind]).parameters) - set(keys)
    assert hidden <= {"graph", "block"}


def test_local_steps_and_optimizers_are_settings_of_every_method(tmp_path: Path) -> None:
    table = (
        'kind = "PerronD3GD"\nstep_size = 0.1\nevery = 4\nouter = 0.5\noptimizer = {kind = "Momentum", momentum = 0.8}'
    )
    algorithm, *_ = load(write(tmp_path, algorithm=table)).build()
    method, optimizer = d3gd.PerronD3GD(step_size=0.1), d3gd.Momentum(momentum=0.8)
    assert algorithm == d3gd.Local(method=method, every=4, outer=0.5, optimizer=optimizer)
    small, *_ = load(write(tmp_path, algorithm=f'{table}\ncompress = "int8"')).build()
    assert small == d3gd.Compressed(method=algorithm, compress="int8")
    table = 'kind = "PerronD3GD"\nstep_size = 0.1\nmomentum = 0.5\nevery = 8\nsteered = false'
    algorithm, *_ = load(write(tmp_path, algorithm=table)).build()
    method = d3gd.PerronD3GD(step_size=0.1, momentum=0.5)
    assert algorithm == d3gd.Local(method=method, every=8, steered=False)
    with pytest.raises(SettingsError, match="damping is of compressed messages"):
        load(write(tmp_path, algorithm=f"{table}\ndamping = 0.5")).build()
    with pytest.raises(SettingsError, match=r"experiment.toml: \[algorithm\] PULMDGD says nothing of where"):
        load(write(tmp_path, algorithm='kind = "PULMDGD"\nstep_size = 0.1\nevery = 4')).build()
