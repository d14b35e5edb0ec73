"""Memory that processes share."""

import subprocess
import sys

import numpy as np
import pytest

from d3gd.transports.shared import Shared

pytestmark = pytest.mark.skipif(not Shared().address, reason="this system shares no memory without files")
READER = """
import sys, numpy as np
from d3gd.transports.shared import Shared
memory, found = Shared(), []
for line in sys.stdin:
    address, *places = line.split(",")
    assert memory._others or memory.open(1, address)
    for place in places:
        into = np.empty(5, dtype=np.uint8)
        memory.read(1, int(place), into)
        found += into.tolist()
    print(found, flush=True)
    found = []
"""


def test_another_process_reads_what_is_written_also_when_it_grows():
    own = Shared()
    reader = subprocess.Popen([sys.executable, "-c", READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with reader:
        for size in (5, 1000, 100_000):
            first, second = np.arange(5, dtype=np.uint8) + size % 7, np.full(size, 9, dtype=np.uint8)
            places = own.write([first, second, first])
            assert places[0] == places[2] != places[1]  # written once for two readers
            reader.stdin.write(",".join([own.address, *map(str, places)]) + "\n")
            reader.stdin.flush()
            assert reader.stdout.readline().strip() == str([*first.tolist(), *[9] * 5, *first.tolist()])
        reader.stdin.close()
        assert reader.wait(timeout=60) == 0


@pytest.mark.parametrize(
    "change", [lambda p, f, t: f"{p} {f} {t[::-1]}", lambda p, f, t: f"{2**30} {f} {t}", lambda *_: ""]
)
def test_memory_that_is_not_there_is_not_opened(change):
    own = Shared()
    assert Shared().open(1, own.address)
    assert not Shared().open(1, change(*own.address.split()))
