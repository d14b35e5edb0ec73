"""The table of docs/explanation/trust.md on neighbours that lie: python -m docs.scripts.trust_table.

Six sites, as threads on the loopback interface, learn digits with label skew; one of them sends something else than its
model. The accuracy is the mean of the five honest sites', on all classes.
"""

import socket
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import d3gd
from d3gd.sites.hub import Hub
from d3gd.sites.init import Link, write_sites
from d3gd.sites.run import run
from d3gd.sites.settings import load
from docs.scripts import between

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "sites"))
from run import write_table

NAMES, LIAR, ITERATIONS = "abcdef", "f", 400
EDGES = [(NAMES[i], NAMES[(i + hop) % 6]) for i in range(6) for hop in (1, 2, 3)]
COMMON = f"""
iterations = {ITERATIONS}
every = 100
patience = 20.0
[problem]
kind = "own_table"
file = "digits.csv"
test = "test.csv"
classes = 10
batch = 32
[algorithm]
kind = "DiDGD"
step_size = 0.1
averaged = true
"""
LIES = {
    "nothing wrong": lambda x, rng: x,
    "noise of its model's size": lambda x, rng: x + np.linalg.norm(x) / np.sqrt(x.size) * rng.normal(size=x.shape),
    "noise of 100 times that": lambda x, rng: (
        x + 100 * (1 + np.linalg.norm(x)) / np.sqrt(x.size) * rng.normal(size=x.shape)
    ),
    "its model with the wrong sign": lambda x, rng: -x,
    "its model times 1,000": lambda x, rng: 1000 * (x + 1e-3),
}


def ports(count: int) -> list[int]:
    """Return free ports."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]


def accuracy(folder: Path, lie: str, trust: str) -> float:
    """Train, and return the mean accuracy of the honest sites."""
    address = {name: f"tcp://127.0.0.1:{port}" for name, port in zip(NAMES, ports(6), strict=True)}
    (folder / "common.toml").write_text(COMMON)
    links = [Link(a, b, address[a], "target") for a, b in EDGES]
    made = write_sites(links, folder / "common.toml", folder / "sites", session="trust")
    train, test = d3gd.data.hold_out(*d3gd.data.digits(), fraction=0.2)
    for place, part in zip(made, d3gd.data.split_by_label(*train, agents=6, alpha=0.1), strict=True):
        write_table(place / "digits.csv", *part)
        write_table(place / "test.csv", *test)
    rng, post, found = np.random.default_rng(0), Hub.post, {}

    def lying(hub: Hub, place: tuple[int, int], arrays: dict[str, np.ndarray]) -> None:
        if hub.name == LIAR:
            arrays = {**arrays, "x": LIES[lie](arrays["x"], rng)}
        post(hub, place, arrays)

    def train_site(place: Path) -> None:
        found[place.name] = run(load(place / "site.toml", trust=trust))

    Hub.post = lying
    try:
        threads = [threading.Thread(target=train_site, args=(place,)) for place in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        Hub.post = post
    return float(np.mean([result.metrics["accuracy"][-1] for name, result in found.items() if name != LIAR]))


def main() -> None:
    """Write the table."""
    rows = ['| what one of six sites sends | `trust = "all"` | `trust = "clip"` |', "|---|---|---|"]
    for lie in LIES:
        cells = []
        for trust in ("all", "clip"):
            with tempfile.TemporaryDirectory() as folder:
                cells.append(f"{accuracy(Path(folder), lie, trust):.3f}")
        rows.append(f"| {lie} | {' | '.join(cells)} |")
    between.write("explanation/trust.md", "trust", "\n".join(rows))


if __name__ == "__main__":
    main()
