"""Weights, or links and weights, computed before a run, from the data or from the graph alone."""

from d3gd.topologies.ac_gt import ac_gt
from d3gd.topologies.base import Topology
from d3gd.topologies.equi import equi_one_peer, equi_static
from d3gd.topologies.fast_mixing import fast_mixing
from d3gd.topologies.fastest_mixing import FastestMixing, certified_mixing, fastest_mixing
from d3gd.topologies.refined import refined
from d3gd.topologies.sequences import base_graph, one_peer_exponential, union
from d3gd.topologies.stl_fw import stl_fw, stl_fw_objective

__all__ = [
    "FastestMixing",
    "Topology",
    "ac_gt",
    "base_graph",
    "certified_mixing",
    "equi_one_peer",
    "equi_static",
    "fast_mixing",
    "fastest_mixing",
    "one_peer_exponential",
    "refined",
    "stl_fw",
    "stl_fw_objective",
    "union",
]
