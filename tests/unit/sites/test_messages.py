import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d3gd.sites import messages
from d3gd.sites.messages import Beat, Data, Hello, Row, Rows, UnfitError

HEAD = {"protocol": messages.PROTOCOL, "session": "s", "sender": "a", "boot": 3, "number": 1}
X = {"x": np.arange(6.0).reshape(1, 6), "Y": np.ones((1, 3), dtype=np.float32)}


def data(arrays=X):
    return Data(**HEAD, iteration=4, turn=1, arrays=messages.describe(arrays))


def frames(arrays=X):
    return [array.tobytes() for array in arrays.values()]


@pytest.mark.parametrize(
    "message",
    [
        Hello(**HEAD, version="1", clock=1.5, settings={"seed": "0"}),
        Rows(**HEAD, rows={"a": Row(1, ("b", "c"))}),
        Beat(**HEAD, rows="x", ended="completed"),
        data(),
    ],
)
def test_messages_come_back_as_they_were_sent(message):
    assert messages.decode(messages.encode(message)) == message


def test_arrays_come_back_to_the_bit():
    found = messages.unpack(data().arrays, frames(), 1e6)
    assert all(np.array_equal(found[name], X[name]) and found[name].dtype == X[name].dtype for name in X)


@pytest.mark.parametrize(("value", "told"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf"), (-1e7, "1e.07")])
def test_numbers_that_no_model_holds_are_dropped(value, told):
    bad = {**X, "x": np.where(np.arange(6) == 2, value, X["x"])}
    with pytest.raises(UnfitError, match=told):
        messages.unpack(messages.describe(bad), frames(bad), 1e6)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": (1, 7)},
        {"shape": (2**62, 2**62)},
        {"shape": (6,), "dtype": "<f4"},
        {"dtype": "|O"},
        {"dtype": "<c16"},
        {"dtype": "nonsense"},
        {"name": "Y"},
    ],
)
def test_headers_that_do_not_fit_their_bytes_are_dropped(change):
    first, second = data().arrays
    with pytest.raises(UnfitError):
        messages.unpack((type(first)(**{**as_dict(first), **change}), second), frames(), 1e6)


def as_dict(spec):
    return {name: getattr(spec, name) for name in ("name", "dtype", "shape")}


def test_another_version_of_the_protocol_is_named():
    other = Beat(**{**HEAD, "protocol": 7})
    with pytest.raises(UnfitError, match=f"version 7 of the protocol, this site {messages.PROTOCOL}"):
        messages.decode(messages.encode(other))


@given(st.binary(max_size=200))
def test_junk_is_no_message(junk):
    try:
        messages.decode(junk)
    except UnfitError:
        return
    raise AssertionError("junk was taken for a message")


@given(st.data())
def test_a_changed_frame_is_dropped_or_still_a_sound_message(draw):
    header, body = messages.encode(data()), frames()
    content = bytearray(header)
    for _ in range(draw.draw(st.integers(1, 4))):
        content[draw.draw(st.integers(0, len(content) - 1))] = draw.draw(st.integers(0, 255))
    try:
        found = messages.decode(bytes(content))
        arrays = messages.unpack(found.arrays, body, 1e6) if isinstance(found, Data) else {}
    except UnfitError:
        return
    assert all(np.isfinite(array).all() for array in arrays.values() if array.dtype.kind == "f")
