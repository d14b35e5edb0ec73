"""Decentralized learning on directed graphs that learns whom each agent should listen to."""

from d3gd import data, graphs, metrics, problems, schedules, theory, weights
from d3gd.algorithms.d3gd import D3GD
from d3gd.algorithms.didgd import DiDGD
from d3gd.engine import run
from d3gd.errors import D3GDError
from d3gd.graphs import Digraph
from d3gd.result import Result

__version__ = "0.1.0"

__all__ = [
    "D3GD",
    "D3GDError",
    "DiDGD",
    "Digraph",
    "Result",
    "data",
    "graphs",
    "metrics",
    "problems",
    "run",
    "schedules",
    "theory",
    "weights",
]
