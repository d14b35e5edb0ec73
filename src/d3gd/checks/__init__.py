"""Checks of methods and problems that users write: what the engine cannot see in a run, tried on purpose."""

from d3gd.checks.method import check_method
from d3gd.checks.problem import check_problem

__all__ = ["check_method", "check_problem"]
