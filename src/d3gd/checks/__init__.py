"""Checks of users' methods and problems for errors that a run does not reveal."""

from d3gd.checks.method import check_method
from d3gd.checks.problem import check_problem

__all__ = ["check_method", "check_problem"]
