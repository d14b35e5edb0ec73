"""Attacks on what users hand to d3gd: settings, files, folders, arguments and ranks.

``python -m tests.fuzz --help`` runs them; ``test_sample.py`` runs a few of each family. A case is a family and a seed,
and nothing else: the same pair always makes the same attack. See docs/results/fuzz.md.
"""
