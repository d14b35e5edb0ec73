"""A notebook: a kernel of its own, as Jupyter starts one."""

from contextlib import contextmanager

import pytest


class Notebook:
    """Runs cells."""

    def __init__(self, manager, client):
        self._manager, self._client = manager, client

    def run(self, code, when=None, then=None):
        """Run a cell and return what it printed; as soon as it prints ``when``, call ``then``."""
        printed = []

        def heard(message):
            text = message["content"].get("text", "") if message["msg_type"] == "stream" else ""
            printed.append(text)
            if when is not None and when in text:
                then()

        reply = self._client.execute_interactive(code, timeout=120, output_hook=heard)["content"]
        assert reply["status"] == "ok", reply
        return "".join(printed)

    def show(self, code):
        """Run a cell and return the kinds of what it shows, such as ``"image/png"``."""
        kinds = []

        def heard(message):
            if message["msg_type"] in ("execute_result", "display_data"):
                kinds.extend(message["content"]["data"])

        reply = self._client.execute_interactive(code, timeout=120, output_hook=heard)["content"]
        assert reply["status"] == "ok", reply
        return kinds

    def interrupt(self):
        """The button of classic notebooks: a signal."""
        self._manager.interrupt_kernel()

    def request_interrupt(self):
        """The button where the kernel is elsewhere: a message."""
        self._client.control_channel.send(self._client.session.msg("interrupt_request"))


@contextmanager
def notebook(folder):
    pytest.importorskip("ipykernel", reason="a notebook needs ipykernel")
    managers = pytest.importorskip("jupyter_client.manager", reason="a notebook needs jupyter_client")
    manager = managers.KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder))
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=60)
        yield Notebook(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
