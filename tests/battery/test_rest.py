"""On every problem and every admissible graph, each method ends at the optimum, or at its known distance from it."""

import numpy as np
import pytest

from d3gd.algorithms import catalogue
from tests.battery.cases import METHODS, PROBLEMS, admissible, name_of, problem, rest, settle
from tests.battery.theory import BALANCE, REST

# A Latin square: each method meets every graph with one problem and every problem on some graph, and the next method
# meets them in other pairs.
CASES = [
    pytest.param(method, kind, graph, id=f"{method}-{kind}-{graph}")
    for m, (method, algorithm) in enumerate(METHODS.items())
    for i, graph in enumerate(admissible(algorithm))
    for j, kind in enumerate(PROBLEMS)
    if (m + i) % len(PROBLEMS) == j
]


def test_a_method_is_exact_or_its_rest_is_known():
    for method, algorithm in METHODS.items():
        assert algorithm.exact or name_of(algorithm) in REST | BALANCE, (
            f"{method} does not end at a stationary point, and tests/battery/theory.py does not say where it does; "
            "add the matrices B and D of its resting place (I - B) X + D G(X) = 0 to REST"
        )
    assert {name_of(algorithm) for algorithm in METHODS.values()} == set(catalogue.methods())


@pytest.mark.parametrize(("method", "kind", "graph"), CASES)
def test_it_comes_to_rest_where_theory_says(method, kind, graph):
    algorithm = METHODS[method]
    network = admissible(algorithm)[graph]
    objective = problem(kind, network.n)
    net, s = settle(algorithm, network, objective)
    np.testing.assert_allclose(algorithm.point(s), rest(algorithm, network, net, s, objective), rtol=0, atol=1e-9)
