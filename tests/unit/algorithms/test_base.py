"""What a method needs is checked before it runs."""

from dataclasses import dataclass

import numpy as np
import pytest

import d3gd
from d3gd.algorithms.base import require_admissible
from d3gd.errors import GraphError, SettingsError, WeightsError

UNDIRECTED = d3gd.DGD(step_size=0.1)


@dataclass(frozen=True)
class Unfinished:
    needs = "in-neighbours"


def test_a_one_way_link_is_named():
    graph = d3gd.Digraph.from_edges(3, [(0, 1), (1, 0), (1, 2), (2, 0)])
    with pytest.raises(GraphError, match="DGD needs undirected links, but agent 0 hears agent 2"):
        require_admissible(UNDIRECTED, graph, d3gd.weights.metropolis(graph))


def test_asymmetric_weights_are_refused_on_undirected_graphs():
    graph = d3gd.graphs.star(4)
    require_admissible(UNDIRECTED, graph, d3gd.weights.metropolis(graph))
    with pytest.raises(WeightsError, match=r"differ by 2\.5e-01"):
        require_admissible(UNDIRECTED, graph, d3gd.weights.uniform(graph))


def test_methods_for_directed_graphs_run_on_any():
    graph = d3gd.graphs.ring(4)
    require_admissible(d3gd.DiDGD(step_size=0.1), graph, d3gd.weights.metropolis(graph))
    assert np.all(graph.out_degrees == 1)


def test_what_is_no_method_is_told_what_it_lacks():
    graph = d3gd.graphs.ring(4)
    with pytest.raises(SettingsError, match="Unfinished has no 'exact'"):
        require_admissible(Unfinished(), graph, d3gd.weights.metropolis(graph))
    with pytest.raises(SettingsError, match=r"DiDGD is a class; .*DiDGD\(step_size=0.1\)"):
        require_admissible(d3gd.DiDGD, graph, d3gd.weights.metropolis(graph))
