"""The command line. Each command imports what it needs itself, so that help does not wait for NumPy."""

from d3gd.cli import (  # they join the application, in the order in which help lists them
    compare,
    experiment,
    graph,
    reproduce,
)
from d3gd.cli.base import app
from d3gd.cli.calling import call, main

__all__ = ["app", "call", "compare", "experiment", "graph", "main", "reproduce"]
