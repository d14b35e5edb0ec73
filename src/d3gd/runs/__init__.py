"""Runs on disk, and progress of long computations."""
