"""Ranks that connect, one of which may leave before; or an existing process group whose last rank is lost."""

import os
import sys
import time

RANK = os.environ.get("RANK", os.environ.get("PMI_RANK"))


def connected(seconds, name="auto", last=None):
    import d3gd

    with d3gd.transports.connect(name, timeout=float(seconds)) as transport:
        if last is not None and transport.rank == 2:
            last()
        assert transport.any(transport.rank == 1)
        os.write(1, f"{transport.rank}/{transport.ranks}\n".encode())  # in one piece, or ranks' lines run together


def main(how, seconds, place=None):
    if how == "group by file":
        from torch import distributed

        world = int(os.environ["PMI_SIZE"])
        distributed.init_process_group("gloo", init_method=f"file://{place}", rank=int(RANK), world_size=world)
        connected(seconds, "torch", last=lambda: os._exit(1))
    elif how == "own group":
        connected("inf")  # starts the process group, which the next one finds
        connected(seconds, last=lambda: time.sleep(60))
    elif how != RANK:
        connected(seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
