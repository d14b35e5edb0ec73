"""A coordinate-wise method steps each slice of a model as it steps the whole, to the bit."""

import numpy as np
import pytest

import d3gd
from d3gd.network import Network
from d3gd.state import flatten, restore
from tests.helpers.methods import every_method

DIM, CUT = 7, 3
METHODS = {name: method for name, method in every_method(0.05).items() if method.coordinatewise}


def sliced(state, part):
    """The state of some coordinates; none of its other arrays is as long as a model."""
    arrays = flatten(state).items()
    return restore(state, {name: a[:, part] if a.ndim == 2 and a.shape[1] == DIM else a for name, a in arrays})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", METHODS)
def test_a_step_of_a_slice_is_the_slice_of_a_step(name, dtype):
    algorithm, graph = METHODS[name], d3gd.graphs.grid(2, 2)
    net = Network(graph, d3gd.weights.metropolis(graph), needs=algorithm.needs, dtype=dtype)
    rng = np.random.default_rng(0)
    s = algorithm.init(net, rng.normal(size=(4, DIM)).astype(dtype))
    for k in range(4):
        g = rng.normal(size=(4, DIM)).astype(dtype)
        after = algorithm.step(net, lambda g=g: g, s, k)
        for part in (slice(0, CUT), slice(CUT, DIM)):
            alone = algorithm.step(net, lambda g=g, part=part: g[:, part], sliced(s, part), k)
            for field, array in flatten(sliced(after, part)).items():
                assert np.array_equal(flatten(alone)[field], array), field
        s = after


def test_the_paper_and_the_default_are():
    assert {type(method) for method in METHODS.values()} >= {d3gd.DiDGD, d3gd.PerronD3GD}
