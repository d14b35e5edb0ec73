"""What a site knows of all sites: rows that they pass on to each other, of which the newest counts."""

import hashlib
from collections.abc import Collection, Mapping

import msgspec

from d3gd.sites.messages import Row


class Roster:
    """The rows of all sites that have been heard of, with the site's own.

    Args:
        name: The site's name.
        boot: Identifies this process of the site: later ones have larger numbers.
        samples: The number of the site's samples, if objectives are weighed by them.

    Attributes:
        rows: The rows, by name; another object after every change.
        digest: Equal for equal rows.
        remembered: Whether others know an earlier process of this site.
    """

    def __init__(self, name: str, boot: int, samples: int) -> None:
        self._name, self._boot, self._samples = name, boot, samples
        self.rows: dict[str, Row] = {}
        self.digest = ""
        self.remembered = self._moved = False

    def hear(self, names: Collection[str] | None, k: int) -> None:
        """Say which sites this one hears from an iteration on; None if they are the same, but it has just joined."""
        own = self.rows.get(self._name)
        hears = own.hears if own and names is None else tuple(sorted(names or ()))
        if own is None or names is None or own.hears != hears:
            version = self._boot if own is None else own.version + 1
            self._merge({self._name: Row(version, hears, self._samples, k)})

    def learn(self, rows: Mapping[str, Row], at: int) -> bool:
        """Take over what another site knows at an iteration, and return whether any of it is news."""
        found = dict(rows)
        if self._name in rows:
            found[self._name] = self._own(rows[self._name], at)
        return self._merge(found)

    def _merge(self, rows: Mapping[str, Row]) -> bool:
        merged = {name: _latest(self.rows.get(name, row), row) for name, row in rows.items()}
        if merged.items() <= self.rows.items():
            return False
        self.rows = dict(sorted({**self.rows, **merged}.items()))
        self.digest = digest_of(self.rows)
        return True

    def _own(self, row: Row, at: int) -> Row:
        """Return the own row, with what others remember of an earlier process: when it last changed."""
        own = self.rows[self._name]
        changed = max(own.changed, row.changed)
        if row.version < self._boot:
            self.remembered = True
            if row.hears != own.hears and not self._moved:
                changed, self._moved = max(changed, at), True  # its file has changed meanwhile
        return msgspec.structs.replace(own, changed=changed)


def digest_of(rows: Mapping[str, Row]) -> str:
    """Return a digest that is equal for equal rows."""
    return hashlib.sha256(msgspec.msgpack.encode(dict(sorted(rows.items())))).hexdigest()[:16]


def _latest(one: Row, other: Row) -> Row:
    """Return the newer of two rows of a site, and the last change that either knows of."""
    newer = other if other.version > one.version else one
    return msgspec.structs.replace(newer, changed=max(one.changed, other.changed))
