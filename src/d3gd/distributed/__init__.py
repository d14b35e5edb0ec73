"""Agents on several processes: who holds whom, what crosses between them, and a rank's part of a problem."""
