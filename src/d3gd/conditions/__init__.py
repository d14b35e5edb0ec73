"""Networks that misbehave: links that come and go, messages lost or late, agents that pause."""

from d3gd.conditions.settings import Conditions, Hardship

__all__ = ["Conditions", "Hardship"]
