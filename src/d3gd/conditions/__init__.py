"""Unreliable networks: changing links, lost or delayed messages, pausing agents."""

from d3gd.conditions.settings import Conditions, Hardship, require_conditions

__all__ = ["Conditions", "Hardship", "require_conditions"]
