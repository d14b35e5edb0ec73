"""A small run, its folder, and the equality of two runs."""

import numpy as np

import d3gd

GRAPH = d3gd.graphs.ring(4)
PROBLEM = d3gd.problems.quadratic(agents=4, dim=2)
METHOD = d3gd.D3GD(step_size=0.05)


def run(out, iterations=60, **options):
    return d3gd.run(METHOD, GRAPH, PROBLEM, iterations=iterations, every=5, checkpoint_every=10, out=out, **options)


def dying_at(k, error=RuntimeError):
    """A callback that ends a run at a record, as a crash would."""

    def die(snapshot):
        if snapshot.k == k:
            raise error

    return die


def same(result, other):
    """Everything but the time is equal, bit by bit."""
    assert result.status == other.status
    assert np.array_equal(result.iterations, other.iterations)
    assert result.metrics.keys() == other.metrics.keys()
    for name, values in result.metrics.items():
        assert np.array_equal(values, other.metrics[name], equal_nan=True), name
    assert np.array_equal(result.x, other.x, equal_nan=True)
    assert np.array_equal(result.weights.indptr, other.weights.indptr)
    assert np.array_equal(result.weights.indices, other.weights.indices)
    assert np.array_equal(result.weights.data, other.weights.data, equal_nan=True)


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def checkpoints(folder):
    return sorted((folder / "checkpoints").iterdir())
