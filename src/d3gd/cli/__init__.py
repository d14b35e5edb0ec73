"""The command line. Each command imports its dependencies when it runs, so that help does not load NumPy."""

from d3gd.cli import (  # importing them registers the commands, in the order of the help
    compare,
    doctor,
    experiment,
    graph,
    report,
    reproduce,
    site,
    sweep,
)
from d3gd.cli.base import app
from d3gd.cli.calling import call, main

__all__ = ["app", "call", "compare", "doctor", "experiment", "graph", "main", "report", "reproduce", "site", "sweep"]
