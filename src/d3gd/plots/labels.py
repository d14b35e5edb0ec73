"""Names of runs in legends: what differs between them, and nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from d3gd.result import Result
from d3gd.validation import one_line


def plain_label(text: str) -> str:
    r"""Return a user's text for a figure: on one line, with dollar signs escaped.

    Example:
        >>> plain_label("5 $")
        '5 \\$'
    """
    return one_line(text).replace("$", r"\$")


def labels_of(results: Iterable[tuple[str, Result]]) -> dict[str, Result]:
    """Name runs for a legend by the settings that differ.

    Args:
        results: Pairs of a folder's name and its run. The folder's name distinguishes runs with the same settings.
    """
    pairs = list(results)
    labels = _told([_facts(result.settings) for _, result in pairs])
    repeated = {label for label in labels if labels.count(label) > 1}
    named: dict[str, Result] = {}
    for label, (folder, result) in zip(labels, pairs, strict=True):
        named[f"{label} ({folder})" if label in repeated or len(pairs) == 1 else label] = result
    return named


def grouped(results: Iterable[tuple[str, Result]]) -> dict[str, list[Result]]:
    """Name runs as :func:`labels_of` does, but put those together that differ in their seed only.

    Args:
        results: Pairs of a folder's name and its run.

    Returns:
        The runs by their names in a legend. Without two runs of the same settings and other seeds, each is alone.
    """
    pairs = list(results)
    facts = [_facts(result.settings) for _, result in pairs]
    same: dict[str, list[int]] = {}
    for i, fact in enumerate(facts):
        same.setdefault(repr({key: value for key, value in fact.items() if not key.endswith("seed")}), []).append(i)
    groups = list(same.values())
    if all(len({facts[i]["seed"] for i in group}) == len(group) for group in groups) and len(groups) < len(pairs):
        shared = [
            {key: value for key, value in facts[group[0]].items() if not key.endswith("seed")} for group in groups
        ]
        counts = [f" ({len(group)} seeds)" if len(group) > 1 else "" for group in groups]
        labels = [f"{label}{count}" for label, count in zip(_told(shared), counts, strict=True)]
        if len(set(labels)) == len(labels):
            return {label: [pairs[i][1] for i in group] for label, group in zip(labels, groups, strict=True)}
    return {label: [result] for label, result in labels_of(pairs).items()}


def _told(facts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a label for each run: what differs, and nothing else; the algorithm where nothing does."""
    keys = list(dict.fromkeys(key for fact in facts for key in fact))
    differing = [key for key in keys if len({repr(fact[key]) for fact in facts if key in fact}) > 1]
    if "algorithm" not in differing and any(all(key not in fact for key in differing) for fact in facts):
        differing.insert(0, "algorithm")  # or a run would have no label
    usual = [_defaults(fact["algorithm"]) if "algorithm" in differing else {} for fact in facts]
    return [
        ", ".join(
            str(fact[key]) if key == "algorithm" else f"{key}={_short(fact[key])}"
            for key in differing
            if key in fact and not (key in known and known[key] == fact[key])
        )
        for fact, known in zip(facts, usual, strict=True)
    ]


def _defaults(algorithm: str) -> dict[str, Any]:
    """Return the defaults of a method, which go without saying where its name is told; none of a user's own."""
    from d3gd.algorithms import catalogue

    method = catalogue.methods().get(algorithm)
    return {} if method is None else {each.name: each.default for each in fields(method) if each.default is not MISSING}


def _facts(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's settings as a flat mapping, by their names in a legend."""
    algorithm = dict(settings.get("algorithm", {}))
    facts = {"algorithm": algorithm.pop("kind", "run"), **algorithm, "seed": settings.get("seed")}
    # How a network was drawn says more than how many links it got, which also depends on the seed.
    network = settings.get("network", {"graph": settings.get("graph", {})})
    for part, table in {**network, "problem": settings.get("problem", {})}.items():
        facts |= {f"{part}.{key}": value for key, value in table.items() if key not in ("fingerprint", "labels")}
    facts |= {f"conditions.{key}": value for key, value in settings.get("conditions", {}).items()}
    facts |= {"dtype": settings.get("dtype")}
    # A problem usually has the run's seed, which is told already.
    return {key: value for key, value in facts.items() if key != "problem.seed" or value != facts["seed"]}


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 24 else text[:21] + "..."
