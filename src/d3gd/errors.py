"""What d3gd raises, and warns of. Each message says what was found, what is needed and what to do, in one line."""


class D3GDError(Exception):
    """Any error that a user of d3gd can cause and mend."""


class GraphError(D3GDError):
    """A graph that cannot be built, or that an algorithm cannot run on."""


class WeightsError(D3GDError):
    """A matrix that is not a row-stochastic set of weights on its graph."""


class ProblemError(D3GDError):
    """Data or a problem that does not fit: NaN, wrong shapes, wrong number of agents."""


class SettingsError(D3GDError):
    """A parameter or a settings file with a value outside its allowed range."""


class RecordError(D3GDError):
    """A run folder or a checkpoint that cannot be written, read or continued."""


class TransportError(D3GDError):
    """Ranks that cannot reach each other, or that send what does not fit."""


class PatienceWarning(UserWarning):
    """Work that will take long, told before it begins."""


class ToldElsewhereError(TransportError):
    """An error that another rank reports; this one only has to end."""


def printable(text: str) -> str:
    r"""Return a text in which nothing can steer a terminal: control characters are written out.

    Example:
        >>> printable("a\x1b[31m\tb")
        'a\\x1b[31m\\tb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)
