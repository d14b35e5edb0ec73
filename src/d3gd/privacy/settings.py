"""How much noise hides an example."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from d3gd.errors import SettingsError
from d3gd.privacy.accountant import epsilon
from d3gd.validation import within


@dataclass(frozen=True, kw_only=True)
class Privacy:
    r"""Clipping and Gaussian noise where the gradient enters, so that all messages are differentially private.

    At every evaluation, each of an agent's :math:`m` examples is drawn independently with probability :math:`q`, the
    problem's batch over :math:`m`, and 1 without a batch. The agent's gradient is replaced by

    .. math::
        \frac{1}{qm} \Bigl( \sum_{s\ \text{drawn}} \min\bigl(1, \tfrac{C}{\|\nabla \ell_s\|}\bigr) \nabla \ell_s
        + \sigma C z \Bigr) + \nabla R(x), \qquad z \sim N(0, I),

    where :math:`R` is the regularization, which depends on no data. Whatever a method computes from it and sends, at
    any time, then is :math:`(\varepsilon, \delta)`-differentially private with respect to one example of one agent:
    for two data sets that are equal but for one example, which one of them lacks, no event of all messages
    together is more than :math:`e^\varepsilon` times as likely, up to :math:`\delta`. The number of an agent's examples
    is not hidden.

    Args:
        clip: The bound C on the norm of an example's gradient.
        noise: The noise multiplier :math:`\sigma`.
        delta: The probability :math:`\delta`, below one over the number of an agent's examples.

    Example:
        >>> privacy = Privacy(clip=1.0, noise=2.0)
        >>> round(privacy.epsilon(steps=500, sample=0.2), 1)
        12.6

    Reference:
        Abadi et al., "Deep learning with differential privacy", CCS 2016.
    """

    clip: float
    noise: float
    delta: float = 1e-5

    def __post_init__(self) -> None:
        within("clip", self.clip, 0, math.inf, closed="()")
        within("noise", self.noise, 0, math.inf, closed="()")
        within("delta", self.delta, 0, 1, closed="()")

    def epsilon(self, *, steps: int, sample: float = 1.0) -> float:
        """Return the epsilon of some evaluations of the gradient.

        Args:
            steps: The number of evaluations.
            sample: The probability of an example to be drawn.
        """
        return epsilon([(self.noise, sample, steps)], self.delta)

    def describe(self) -> dict[str, Any]:
        """Return the settings, ready for JSON."""
        return asdict(self)


def require_privacy(privacy: Any) -> None:
    """Raise an error unless this is None or a :class:`Privacy`."""
    if privacy is not None and not isinstance(privacy, Privacy):
        raise SettingsError(
            f"privacy is a {type(privacy).__name__}; pass a d3gd.Privacy, such as d3gd.Privacy(clip=1.0, noise=1.0)"
        )
