"""Communication between the processes of a run."""

from d3gd.transports.base import Transport
from d3gd.transports.launch import connect

__all__ = ["Transport", "connect"]
