"""The command line on ranks, one of which receives a signal at a chosen moment."""

import os
import signal
import sys

import d3gd
from d3gd.cli import main
from d3gd.runs import files

ALONE = not {"PMI_RANK", "RANK"} & os.environ.keys()
RANK = int(os.environ.get("PMI_RANK", os.environ.get("RANK", "0")))
AT = {"early": (20, signal.SIGKILL), "late": (130, signal.SIGKILL), "interrupt": (73, signal.SIGINT)}
AT["terminate"] = (73, signal.SIGTERM)
WRITING = {"state": "000000000100/state.npz", "manifest": "000000000100/manifest.json"}


def signal_in_step(moment):
    iteration, number = AT[moment]
    step = d3gd.PerronD3GD.step

    def signalled(self, net, g, s, k):
        if k == iteration and (ALONE or RANK == 1):
            os.kill(os.getpid(), number)
        return step(self, net, g, s, k)

    d3gd.PerronD3GD.step = signalled


def kill_in_write(moment):
    """Rank 0 dies with half of a file written."""
    write = files.write_atomically

    def killed(path, content):
        if str(path).endswith(WRITING[moment]) and RANK == 0:
            with files.replacing(path) as file:
                file.write(content[: len(content) // 2])
                file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
        write(path, content)

    files.write_atomically = killed


if __name__ == "__main__":
    moment = sys.argv.pop(1)
    (signal_in_step if moment in AT else kill_in_write)(moment)
    main()
