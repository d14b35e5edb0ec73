"""Sites that pass on what they know come to know the same, in whatever order it reaches them."""

from hypothesis import given
from hypothesis import strategies as st

from d3gd.sites.messages import Row
from d3gd.sites.roster import Roster

# A process numbers what it says of itself: one version, one row.
said = st.integers(1, 5).map(lambda version: Row(version, ("a", "b")[: version % 3], 10 * version, version))
tables = st.lists(st.dictionaries(st.sampled_from("bcd"), said, min_size=1), min_size=1, max_size=6)


def roster():
    own = Roster("a", boot=100, samples=3)
    own.hear({"b"}, 0)
    return own


@given(tables, st.randoms())
def test_the_order_of_news_does_not_matter_and_the_newest_row_stays(news, random):
    one, other = roster(), roster()
    for table in news:
        one.learn(table, 0)
    random.shuffle(news)
    for table in news:
        other.learn(table, 0)
    assert one.rows == other.rows
    assert one.digest == other.digest
    for name, row in one.rows.items():
        assert name == "a" or row.version == max(table[name].version for table in news if name in table)


@given(tables)
def test_what_is_known_is_no_news_and_changes_nothing(news):
    own = roster()
    for table in news:
        own.learn(table, 0)
    before = own.rows
    assert not any(own.learn(table, 0) for table in news)
    assert own.rows is before


def test_nobody_else_says_whom_a_site_hears_but_they_remember_when_it_changed():
    own = roster()
    assert own.learn({"a": Row(7, ("c",), 3, 4)}, at=9)
    assert own.rows["a"] == Row(100, ("b",), 3, 9)
    assert own.remembered
    assert not own.learn({"a": Row(7, ("c",), 3, 4)}, at=20)  # it has moved once


def test_what_a_site_says_anew_is_newer():
    own = roster()
    own.hear({"b"}, 5)
    assert own.rows["a"].version == 100
    own.hear({"c"}, 6)
    assert own.rows["a"] == Row(101, ("c",), 3, 6)
    own.hear(None, 8)
    assert own.rows["a"] == Row(102, ("c",), 3, 8)
