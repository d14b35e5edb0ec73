"""Folders for the sites of a network, to hand out: from a list of links with addresses."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from d3gd import reading
from d3gd.config.schema import Table, checked, keys_of
from d3gd.config.toml import read_toml
from d3gd.digraph import Digraph
from d3gd.errors import GraphError, RecordError, SettingsError
from d3gd.runs import files
from d3gd.sites import keys as keyring
from d3gd.sites.conversation import Neighbours
from d3gd.sites.settings import SiteSettings, require_address, written
from d3gd.sites.wire import Contact
from d3gd.validation import shown

FILE, SECRET = "site.toml", "site.secret"
_LINKS = "a CSV file with the columns source,target,address"
_KEYS = "a CSV file with the columns name,key"
_OWN = ("name", "key", "session", "bind")  # what a template cannot say


class Link(NamedTuple):
    """A row of the list: the target hears the source.

    Attributes:
        source: Who sends.
        target: Who hears it.
        address: Where the source is dialled; None if nobody can dial it.
        dials: Which end dials.
    """

    source: str
    target: str
    address: str | None
    dials: str


def read_links(path: Path) -> list[Link]:
    """Read a list of links with the columns source, target, address and, optionally, dials."""
    header, rows = reading.table(path, _LINKS, error=GraphError)
    for name in ("source", "target", "address"):
        if name not in header:
            raise GraphError(f"{path} has no column {name!r}; give {_LINKS}: where the target dials the source")
    links: list[Link] = []
    for line, row in rows:
        given = {name: row[place].strip() if place < len(row) else "" for place, name in enumerate(header)}
        where = f"{path}, line {line}"
        if not given["source"] or not given["target"]:
            raise GraphError(f"{where}: a source or target is missing; fill it in")
        address = given["address"] and require_address(_whole(given["address"]), f"{where}: address")
        dials = given.get("dials") or ("target" if address else "source")
        if dials not in ("source", "target"):
            raise GraphError(f"{where}: dials is {shown(dials)}; write source or target")
        links.append(Link(given["source"], given["target"], address or None, dials))
    if not links:
        raise GraphError(f"{path} has no links; give one source,target,address row for each")
    return links


def read_keys(path: Path) -> dict[str, str]:
    """Read public keys, by the names of their sites."""
    header, rows = reading.table(path, _KEYS, error=SettingsError)
    if header[:2] != ["name", "key"]:
        raise SettingsError(f"{path} has the columns {', '.join(header)}; give {_KEYS}")
    return {row[0].strip(): keyring.require_key(row[1].strip(), f"{path}, line {line}: key") for line, row in rows}


def write_sites(
    links: Sequence[Link], template: Path, out: Path, *, session: str, public: Mapping[str, str] | None = None
) -> list[Path]:
    """Write a folder per site, with its file and, unless public keys are given, a new secret key.

    Args:
        links: The links.
        template: A TOML file with what all sites have in common: settings, problem and algorithm.
        out: The folder for the sites' folders; it must be new or empty.
        session: The name of the training.
        public: The public keys of all sites, if they have made their own.

    Returns:
        The folders.
    """
    if files.visible(out):
        raise RecordError(f"{out} is not empty; choose a new folder, since keys are never overwritten")
    names = sorted({name for link in links for name in (link.source, link.target)})
    index = {name: place for place, name in enumerate(names)}
    pairs = [(index[link.source], index[link.target]) for link in links]
    Digraph.from_edges(len(names), pairs, names).require_strongly_connected()
    common, parts = _template(template)
    script = _script(template, common.get("script"))
    pairs_of_keys = {} if public is not None else {name: keyring.generate() for name in names}
    known = dict(public or {name: pair.public for name, pair in pairs_of_keys.items()})
    if absent := [name for name in names if name not in known]:
        raise SettingsError(f"there is no key of {absent[0]}; ask its owner for what `d3gd site keygen` printed")
    dialled = _dialled(links)
    texts: dict[str, str] = {}
    for name in names:
        own = SiteSettings(name=name, session=session, key=SECRET, bind=_bind(_addresses(links).get(name)), **common)
        own = own if own.script is None else replace(own, script=Path(own.script).name)
        groups = [
            tuple(
                Contact(other, known[other], dialled.get((name, other)))
                for other in dict.fromkeys(
                    heard if hearing else hearer for heard, hearer in _ends(links, name, hearing)
                )
            )
            for hearing in (True, False)
        ]
        texts[name] = written(own, Neighbours(*groups), parts)
    for name, text in texts.items():
        folder = files.make_folder(out / name)
        files.write_atomically(folder / FILE, text.encode())
        if script is not None:
            files.write_atomically(folder / Path(common["script"]).name, script)
        if name in pairs_of_keys:
            keyring.write_secret(folder / SECRET, pairs_of_keys[name])
    return [out / name for name in names]


def _bind(address: str | None) -> str | None:
    """Return what a site binds: all its interfaces, or the loopback interface if it is dialled there."""
    if address is None:
        return None
    host, port = address.removeprefix("tcp://").rsplit(":", 1)
    return f"tcp://127.0.0.1:{port}" if host in ("127.0.0.1", "localhost") else f"tcp://*:{port}"


def _ends(links: Sequence[Link], name: str, hearing: bool) -> list[tuple[str, str]]:
    return [(link.source, link.target) for link in links if name == (link.target if hearing else link.source)]


def _addresses(links: Sequence[Link]) -> dict[str, str]:
    found: dict[str, str] = {}
    for link in links:
        if link.address is None:
            continue
        before = found.setdefault(link.source, link.address)
        if before.rsplit(":", 1)[1] != link.address.rsplit(":", 1)[1]:
            raise SettingsError(f"{link.source} has the addresses {before} and {link.address}; a site has one port")
    return found


def _dialled(links: Sequence[Link]) -> dict[tuple[str, str], str]:
    """Return the address that one site dials to reach another, once for every pair of neighbours."""
    addresses, found = _addresses(links), dict[tuple[str, str], str]()
    for link in links:
        pair = (link.target, link.source) if link.dials == "target" else (link.source, link.target)
        if pair in found or pair[::-1] in found:
            continue
        address = link.address if link.dials == "target" else addresses.get(link.target)
        if address is None:
            raise SettingsError(
                f"{pair[0]} has to dial {pair[1]}, which has no address; give one of the two an address, or connect "
                "both by a VPN"
            )
        found[pair] = address
    return found


def _template(path: Path) -> tuple[dict[str, Any], dict[str, Table]]:
    content = read_toml(path)
    parts: dict[str, Table] = {
        name: content.pop(name) for name in ("problem", "algorithm", "privacy") if name in content
    }
    for name in _OWN:
        if name in content:
            raise SettingsError(f"{path.name}: {name} differs from site to site; leave it out here")
    allowed = {name: kind for name, kind in keys_of(SiteSettings).items() if name not in _OWN}
    return checked(content, allowed, f"{path.name}:", also=["[problem]", "[algorithm]", "[privacy]"]), parts


def _script(template: Path, name: str | None) -> bytes | None:
    """Return the script that a template names, next to it, for all sites' folders."""
    if name is None:
        return None
    return reading.content(template.parent / name, f"the script that {template.name} names", error=SettingsError)


def _whole(address: str) -> str:
    return address if "://" in address else f"tcp://{address}"
