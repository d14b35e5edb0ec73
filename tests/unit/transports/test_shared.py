"""Memory and pipes that processes share."""

import subprocess
import sys
import time

import numpy as np
import pytest

from d3gd.transports.failures import LateError, MisfitError
from d3gd.transports.shared import Shared

pytestmark = pytest.mark.skipif(not Shared(0, 1).address, reason="this system shares no memory without files")
READER = """
import sys, time, numpy as np
from d3gd.transports.shared import Shared
own = Shared(1, 2)
print(own.address, flush=True)
assert own.open(0, sys.stdin.readline())
print("opened", flush=True)
sys.stdin.readline()
own.opened()
for size in (5, 100_000, 7):
    one, other = np.empty(size, dtype=np.uint8), np.empty(3, dtype=np.uint8)
    own.receive(0, size, one, time.monotonic() + 30)
    own.receive(0, size, other, time.monotonic() + 30)
    own.confirm({0}, size)
    print(one.sum(dtype=int), other.sum(dtype=int), flush=True)
"""


def pair():
    """Two ends of this process."""
    one, other = Shared(0, 2), Shared(1, 2)
    assert one.open(1, other.address)
    assert other.open(0, one.address)
    one.opened(), other.opened()
    return one, other


def soon():
    return time.monotonic() + 0.05


def test_another_process_copies_what_is_sent_also_when_memory_grows():
    own = Shared(0, 2)
    reader = subprocess.Popen([sys.executable, "-c", READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with reader:
        assert own.open(1, reader.stdout.readline())
        for line in (own.address, ""):
            reader.stdin.write(line + "\n")
            reader.stdin.flush()
            if line:
                assert reader.stdout.readline() == "opened\n"
                own.opened()
        for size in (5, 100_000, 7):
            own.send([(1, np.full(size, 2, dtype=np.uint8)), (1, np.arange(3, dtype=np.uint8))], size)
            own.confirmed({1}, size, time.monotonic() + 30)
            assert reader.stdout.readline().split() == [str(2 * size), "3"]
        assert reader.wait(timeout=60) == 0
    with pytest.raises(LateError) as ended:
        own.receive(1, 0, np.empty(1, dtype=np.uint8), time.monotonic() + 30)
    assert ended.value.broken


def test_a_message_to_several_is_written_once():
    own, others = Shared(0, 3), [Shared(rank, 3) for rank in (1, 2)]
    for rank, other in enumerate(others, 1):
        assert own.open(rank, other.address)
        assert other.open(0, own.address)
    message, into = np.arange(1000, dtype=np.uint8), np.empty(1000, dtype=np.uint8)
    own.send([(1, message), (2, message)], 7)
    assert own._own.size < 2 * message.size
    for other in others:
        other.receive(0, 7, into, soon())
        assert np.array_equal(into, message)


def test_what_does_not_come_or_does_not_fit_is_told():
    one, other = pair()
    into = np.empty(4, dtype=np.uint8)
    with pytest.raises(LateError) as late:
        other.receive(0, 1, into, soon())
    assert not late.value.broken
    for tag, size in ((2, 4), (1, 5)):
        one.send([(1, np.empty(size, dtype=np.uint8))], tag)
        with pytest.raises(MisfitError):
            other.receive(0, 1, into, soon())
    with pytest.raises(LateError):
        one.confirmed({1}, 1, soon())


@pytest.mark.parametrize(
    "change",
    [
        lambda p, f, t, *ends: f"{p} {f} {t[::-1]} {' '.join(ends)}",
        lambda p, f, t, *ends: f"{2**30} {f} {t} {' '.join(ends)}",
        lambda *_: "",
    ],
)
def test_memory_that_is_not_there_is_not_opened(change):
    own = Shared(0, 2)
    assert not Shared(1, 2).open(0, change(*own.address.split()))
    assert Shared(1, 2).open(0, own.address)
