"""One process per site, without a server: the same training between hosts that start and stop by themselves.

``d3gd site`` runs it from files; :func:`connect` is for programs, above all with
:class:`d3gd.torch.DecentralizedOptimizer`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from d3gd.errors import SettingsError

if TYPE_CHECKING:
    from d3gd.network import Network

__all__ = ["connect"]


@contextmanager
def connect(path: str | Path | None = None, *, algorithm: Any = None) -> "Iterator[Network]":
    """Join the training that a site's file describes; return this site's agent, for an optimizer.

    It waits for the other sites, for as long as the file's ``connect``, and stays until they have this site's last
    messages.

    Args:
        path: The site's file; see ``d3gd site init``. By default that with which ``d3gd site run`` started this script.
        algorithm: The method, compared with the other sites'; by default that of the file.

    Yields:
        The network to pass to :class:`d3gd.torch.DecentralizedOptimizer`; ``int(network.agents[0])`` is this site's
        index among the names in alphabetical order.

    Example:
        At every site::

            with d3gd.sites.connect("site.toml") as network:
                opt = d3gd.torch.DecentralizedOptimizer(model.parameters(), algorithm=algorithm, network=network)
                for inputs, target in loader:
                    opt.zero_grad()
                    loss(model(inputs), target).backward()
                    opt.step()
    """
    try:
        import zmq  # noqa: F401
    except ImportError as error:
        raise SettingsError(f"sites need pyzmq ({error}); install it with: pip install 'd3gd[sites]'") from None
    from d3gd.runs import files
    from d3gd.sites import script
    from d3gd.sites.reload import rereading
    from d3gd.sites.run import part
    from d3gd.sites.session import joined
    from d3gd.sites.settings import load
    from d3gd.sites.status import Reporter

    file = load(script.given(path))
    if file.privacy() is not None:
        raise SettingsError(
            f"{file.path} has a table [privacy], but a program computes its gradients itself; leave the table out, and "
            "use d3gd.torch.PrivateGradients in the program"
        )
    files.make_folder(file.folder)
    with (
        joined(file, algorithm) as session,
        Reporter(session, file.folder),
        rereading(file, session),
    ):
        try:
            yield session.network()
        except BaseException:
            session.hub.finish("failed")
            raise
        part(session, "completed")
