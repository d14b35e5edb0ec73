"""Every method as its paper prints it: dense matrices, all agents at once, nothing from the library.

A is row-stochastic (W if symmetric), C column-stochastic; X, G and S have one row per agent. Each function returns the
models of all iterations. To be picked up by the battery, a function has the name of its method.
"""

from tests.battery.textbook import descent, perron, tracking

METHODS = {name: found for family in (descent, tracking, perron) for name, found in vars(family).items()}
