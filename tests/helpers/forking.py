"""Ranks of a PyTorch process group as copies of one process, which imports PyTorch for all of them.

Takes the number of ranks, a script and its arguments. Under torchrun every rank, and torchrun itself, imports PyTorch,
which takes longer than most tests.
"""

import os
import runpy
import signal
import sys
import time
from importlib import import_module

from tests.helpers.ports import ports


def main(ranks, *words):
    for name in ("d3gd.engine", "d3gd.problems", "d3gd.torch"):
        import_module(name)
    (port,) = ports(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    running = {copied(rank, words) for rank in range(ranks)}
    code = 0
    while running:
        pid, status = os.wait()
        running.remove(pid)
        if status and not code:  # as torchrun does, end the others once one has failed
            code = 1
            time.sleep(0.1)
            for other in running:
                os.kill(other, signal.SIGTERM)
    return code


def copied(rank, words):
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        sys.argv = list(words)
        runpy.run_path(words[0], run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code or 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))
