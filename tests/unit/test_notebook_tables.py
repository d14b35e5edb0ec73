"""Tables that notebooks show."""

import re

import pytest

import d3gd
from tests.helpers.comparing import compared

HOSTILE = "<img src=x onerror=alert(1)>"


def cells(thing):
    return re.findall(r"<td>(.*?)</td>", thing._repr_html_())


def test_a_result_shows_its_metrics_at_both_ends():
    graph, problem = d3gd.graphs.ring(3), d3gd.problems.quadratic(agents=3, dim=2)
    metrics = {HOSTILE: lambda s: float(s.k), "each": lambda s: s.x[:, 0]}
    result = d3gd.run(d3gd.DiDGD(step_size=0.1), graph, problem, iterations=20, metrics=metrics)
    assert cells(result) == ["&lt;img src=x onerror=alert(1)&gt;", "0", "20"]
    assert "DiDGD: completed at iteration 20" in result._repr_html_()


def test_a_graph_shows_its_size_and_whether_it_connects():
    facts = cells(d3gd.Digraph.from_edges(4, [(0, 1), (0, 2), (1, 0)]))
    told = dict(zip(facts[::2], facts[1::2], strict=True))
    assert told == {
        "agents": "4",
        "links": "3",
        "in-degrees": "0 to 1",
        "out-degrees": "0 to 2",
        "undirected": "no",
        "strongly connected": "no",
    }


@pytest.mark.parametrize("own", [False, True])
def test_a_problem_shows_how_it_was_made(own):
    if own:
        problem = d3gd.problems.from_functions(agents=3, dim=2, gradient=lambda i, x: x)
        assert cells(problem) == ["agents", "3", "dim", "2"]
    else:
        facts = cells(d3gd.problems.quadratic(agents=3, dim=2, seed=5))
        assert {"agents": "3", "dim": "2", "seed": "5"}.items() <= dict(
            zip(facts[::2], facts[1::2], strict=True)
        ).items()


def test_a_comparison_shows_its_table():
    found = compared(only=["DiDGD", "DGD"], seeds=1, steps=[0.1])
    names = cells(found)[1 :: len(re.findall("<th>", found._repr_html_()))]
    assert names == [row.method for row in found.rows]
