"""Four sites on one machine, in processes that know only their own folder.

    python examples/sites/run.py                      # ten seconds or so
    python examples/sites/run.py --prepare --hosts    # only the folders, for containers: see compose.yml

Writes a folder per site with its own handwritten digits (each site has few of the ten classes), starts the four sites,
waits for them, and draws every site's accuracy. Needs pip install 'd3gd[sites,data]'.
"""

import argparse
import csv
import subprocess
import sys
from pathlib import Path

import d3gd
from d3gd.arrays import Array
from d3gd.sites.collect import collected
from d3gd.sites.init import read_links, write_sites

HERE = Path(__file__).parent


def write_table(path: Path, images: Array, labels: Array) -> None:
    """Write a table with a column per pixel and the digit as its label."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*(f"p{i}" for i in range(images.shape[1])), "label"])
        writer.writerows([*map(float, image), int(label)] for image, label in zip(images, labels, strict=True))


def prepare(out: Path, *, hosts: bool) -> list[Path]:
    """Write the folders of all sites, each with its own data; with ``hosts``, for containers with the sites' names."""
    links = read_links(HERE / "links.csv")
    if hosts:
        links = [link._replace(address=f"tcp://{link.source}:7001") for link in links]
    folders = write_sites(links, HERE / "common.toml", out, session="digits")
    train, test = d3gd.data.hold_out(*d3gd.data.digits(), fraction=0.2)
    parts = d3gd.data.split_by_label(*train, agents=len(folders), alpha=0.1)
    for folder, part in zip(folders, parts, strict=True):
        write_table(folder / "digits.csv", *part)
        write_table(folder / "test.csv", *test)
    return folders


def arguments() -> argparse.ArgumentParser:
    """Return what the command line may say."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--out", type=Path, default=Path("sites"), help="folder for the sites' folders")
    found.add_argument("--prepare", action="store_true", help="only write the folders")
    found.add_argument("--hosts", action="store_true", help="with the sites' names as addresses, for containers")
    return found


def main() -> None:
    """Prepare, train, and draw."""
    given = arguments().parse_args()
    try:
        folders = prepare(given.out, hosts=given.hosts)
    except d3gd.errors.RecordError as error:  # a second run in the same folder
        arguments().error(str(error))
    if given.prepare:
        return
    command = [sys.executable, "-m", "d3gd", "site", "run", "site.toml"]
    logs = [(folder / "log.txt").open("w") for folder in folders]
    sites = [subprocess.Popen(command, cwd=f, stdout=log, stderr=log) for f, log in zip(folders, logs, strict=True)]
    codes = [site.wait() for site in sites]
    if any(codes):
        sys.exit(
            f"a site failed: {dict(zip([folder.name for folder in folders], codes, strict=True))}; see its log.txt"
        )
    result = collected([folder / "run" for folder in folders])
    for folder, accuracy in zip(folders, result.metrics["accuracy_per_site"][-1], strict=True):
        print(f"{folder.name:10s} test accuracy {accuracy:.3f}")
    draw(result, [folder.name for folder in folders], given.out / "accuracy.png")


def draw(result: d3gd.Result, names: list[str], path: Path) -> None:
    """Draw the accuracy of every site's model on all classes."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for name, curve in zip(names, result.metrics["accuracy_per_site"].T, strict=True):
        axes.plot(result.iterations, curve, label=name)
    axes.set(xlabel="iteration", ylabel="test accuracy", ylim=(0, 1))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
