"""Errors and warnings. Each message names what was found, what is needed and what to do, in one line."""

_LONGEST = 1000  # characters of a message; what a user typed may be repeated in it


class D3GDError(Exception):
    """Any error that a user of d3gd can cause and correct; a long message loses its middle."""

    def __init__(self, message: object = "") -> None:
        text, half = str(message), _LONGEST // 2
        super().__init__(text if len(text) <= _LONGEST else f"{text[:half]} ... {text[-half:]}")


class GraphError(D3GDError):
    """A graph that cannot be built, or that an algorithm cannot run on."""


class WeightsError(D3GDError):
    """A matrix that is not a row-stochastic set of weights on its graph."""


class ProblemError(D3GDError):
    """An invalid problem or data: NaN, wrong shapes, wrong number of agents."""


class SettingsError(D3GDError):
    """A parameter or a settings file with a value outside its allowed range."""


class RecordError(D3GDError):
    """A run folder or a checkpoint that cannot be written, read or continued."""


class TransportError(D3GDError):
    """Ranks that cannot reach each other, or whose messages do not match."""


class DivergedError(D3GDError):
    """A model whose numbers are no longer finite."""


class PatienceWarning(UserWarning):
    """Warns of a long computation before it begins."""


class ToldElsewhereError(TransportError):
    """An error that another rank reports; this rank only ends."""


def printable(text: str) -> str:
    r"""Return a text with control characters escaped, so that it cannot control a terminal.

    Example:
        >>> printable("a\x1b[31m\tb")
        'a\\x1b[31m\\tb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)
