"""Experiments as TOML files."""
