"""One result of all sites' runs, for those who may see them all."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, vstack

from d3gd.arrays import CSR, Array
from d3gd.errors import RecordError
from d3gd.result import Result, Status

_TOTALS = ("bytes", "bytes_received", "waited", "missed", "dropped")


def collected(folders: Sequence[Path]) -> Result:
    """Return one result of the runs of all sites of a training.

    It has the iterations that all sites have recorded. Metrics are means over sites, with the values of each as
    ``..._per_site``; totals such as bytes are sums.

    Args:
        folders: The folders of their runs.
    """
    runs = {str(folder): Result.load(folder) for folder in folders}
    sites = {folder: run.settings.get("site") for folder, run in runs.items()}
    for folder, site in sites.items():
        if site is None:
            raise RecordError(f"{folder} is the run of no site; give folders that d3gd site run wrote")
    names = {site["name"]: runs[folder] for folder, site in sites.items() if site is not None}
    first = next(iter(names.values()))
    labels = sorted({label for run in runs.values() for label in run.settings["graph"]["labels"]})
    if len({site["session"] for site in sites.values() if site is not None}) > 1:
        raise RecordError("these are runs of several sessions; collect those of one")
    if missing := [label for label in labels if label not in names]:
        raise RecordError(f"the run of {missing[0]} is missing; give all {len(labels)} sites' folders")
    ordered = [names[label] for label in labels]
    common = sorted(set.intersection(*(set(run.iterations.tolist()) for run in ordered)))
    if not common:
        raise RecordError("no iteration was recorded by all sites; their curves cannot be put together")
    places = [np.searchsorted(run.iterations, common) for run in ordered]
    metrics: dict[str, Array] = {}
    for name in first.metrics:
        values = np.stack([run.metrics[name][place] for run, place in zip(ordered, places, strict=True)], axis=1)
        metrics[name] = values.sum(axis=1) if name in _TOTALS else values.mean(axis=1)
        if name not in _TOTALS:
            metrics[f"{name}_per_site"] = values
    status: Status = next((run.status for run in ordered if run.status != "completed"), "completed")
    settings = {name: value for name, value in first.settings.items() if name not in ("site", "place")}
    settings["graph"] = {**settings["graph"], "agents": len(labels), "labels": labels}
    x = np.concatenate([run.x for run in ordered])
    away = x - x.mean(axis=0)
    spread = 2 * float(np.einsum("ij,ij->", away, away)) / len(x)
    return Result(
        iterations=np.array(common),
        metrics=metrics,
        x=x,
        weights=_weights(ordered, labels),
        status=status,
        message=f"{len(x)} sites; disagreement of the final models {spread:.3g}",
        seconds=max(run.seconds for run in ordered),
        settings=settings,
    )


def _weights(runs: Sequence[Result], labels: Sequence[str]) -> CSR:
    """Return the rows of all sites, whose last networks may differ."""
    index = {label: place for place, label in enumerate(labels)}
    rows = []
    for run in runs:
        columns = np.array([index[label] for label in run.settings["graph"]["labels"]])
        row = run.weights.tocsr()
        rows.append(csr_array((row.data, columns[row.indices], row.indptr), shape=(1, len(labels))))
    return vstack(rows, format="csr")
