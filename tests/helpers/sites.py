"""Sites on the loopback interface."""

import re
import threading
from contextlib import ExitStack, contextmanager

from d3gd.sites.init import Link, write_sites
from d3gd.sites.settings import load
from tests.helpers.ports import ports

RING = [("a", "b"), ("b", "c"), ("c", "a")]
SIX = [*zip("abcdef", "bcdefa", strict=True), ("a", "d"), ("c", "f"), ("e", "b")]
COMMON = """
iterations = {iterations}
every = 20
connect = 60
forget = 60
{more}
[problem]
kind = "sigmoid_classification"
samples = 10
features = 3
test_samples = 10
batch = 4
[algorithm]
{algorithm}
"""
AVERAGED = 'kind = "DiDGD"\nstep_size = 0.1\naveraged = true'


def folders(out, edges=RING, *, iterations=40, algorithm=AVERAGED, more="patience = inf", dials=None):
    """Write the folders of sites, and return their files by name."""
    names = sorted({name for edge in edges for name in edge})
    address = {name: f"tcp://127.0.0.1:{port}" for name, port in zip(names, ports(len(names)), strict=True)}
    links = [Link(a, b, address[a], (dials or {}).get((a, b), "target")) for a, b in edges]
    template = out / "common.toml"
    template.write_text(COMMON.format(iterations=iterations, algorithm=algorithm, more=more))
    write_sites(links, template, out / "sites", session="test")
    return {name: out / "sites" / name / "site.toml" for name in names}


def together(work):
    """Call functions in threads of their own, and return their results or errors, by name."""
    found = {}

    def call(name, function):
        try:
            found[name] = function()
        except BaseException as error:
            found[name] = error

    threads = [threading.Thread(target=call, args=item, daemon=True) for item in work.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


@contextmanager
def hubs(files, beat=0.05, **changes):
    """Start the conversations of some sites, without any training."""
    from d3gd.sites import hub
    from d3gd.sites.session import opened

    before, hub.BEAT = hub.BEAT, beat
    try:
        with ExitStack() as stack:
            yield {
                name: stack.enter_context(opened(load(path), {"seed": "0", **changes.get(name, {})}))
                for name, path in files.items()
            }
    finally:
        hub.BEAT = before


def without(text, name):
    """The text of a site's file without a neighbour."""
    return re.sub(rf'\[\[\w+\]\]\nname = "{name}"\nkey = "[^"]*"\n(address = "[^"]*"\n)?\n?', "", text)
