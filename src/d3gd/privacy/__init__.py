"""Differential privacy: what one example of an agent can do to all that the agent ever sends."""

from d3gd.privacy.accountant import noise_for
from d3gd.privacy.settings import Privacy

__all__ = ["Privacy", "noise_for"]
