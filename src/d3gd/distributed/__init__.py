"""Agents on several processes: the partition, the rows exchanged between ranks, and a rank's part of a problem."""
