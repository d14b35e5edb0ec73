"""Sweeps: an experiment with every combination of some settings' values, and with several seeds."""
