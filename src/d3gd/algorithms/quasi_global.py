"""What methods with quasi-global momentum share: fixed weights with their exact Perron vector."""

from typing import Any, Literal, TypeVar

from d3gd.algorithms.base import Algorithm, Needs
from d3gd.arrays import Floats
from d3gd.network import Network
from d3gd.schedules import Schedule
from d3gd.validation import one_of, positive, within

S = TypeVar("S")


class QuasiGlobal(Algorithm[S]):
    """A method whose agents remember the movement of mixed models.

    Its state has a field ``rule``, of :class:`d3gd.rules.fixed.Known`.
    """

    coordinatewise = True
    relies_on = "the Perron vector of its weights"

    step_size: float | Schedule
    momentum: float
    rule: Literal["mixing", "fixed"]
    perron: Literal["discovered", "known"]

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("step_size", self.step_size)
        within("momentum", self.momentum, 0, 1)
        one_of("rule", self.rule, ("mixing", "fixed"))
        one_of("perron", self.perron, ("discovered", "known"))

    @property
    def needs(self) -> Needs:
        """In-neighbours suffice, unless the network is said to be known."""
        return "the network" if self.perron == "known" else "in-neighbours"

    def weights(self, net: Network, s: Any) -> Floats:
        """Return the weights in use."""
        a: Floats = s.rule.use(net, 0).a
        return a

    def scale(self, net: Network, s: Any) -> Floats:
        """Return the Perron weights that agents use."""
        pi: Floats = s.rule.use(net, 0).pi[:, 0]
        return pi
