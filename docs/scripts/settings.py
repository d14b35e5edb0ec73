"""The reference of settings files, from the signatures and docstrings that are their schema."""

import inspect
from collections.abc import Callable
from typing import Any

import d3gd
from d3gd.config import experiment, tables, wrapping
from d3gd.config.schema import Keys, keys_of, to_toml, words
from d3gd.sites.own_table import own_table
from d3gd.sites.settings import Other, SiteSettings
from docs.scripts.docstrings import arguments, markdown, sections

_OPENING = {
    "graph": "The network. [Bring your own](../howto/bring-your-own.md#graph) has examples.",
    "weights": "The initial weights. Without the table: those of the column `weight` of the graph's file, if it has "
    "one,\nelse `metropolis`.",
    "problem": "The agents' objectives and data. `agents` and `seed` follow from the graph and the experiment.",
    "algorithm": "The method. [Their pages](../methods/README.md) have equations and advice; here are their keys.",
}
_START = """# Settings files

Every table and key of the TOML files that d3gd reads. An experiment is a file with the tables `[graph]`, `[problem]`
and `[algorithm]`, and maybe `[weights]`, `[conditions]`, `[privacy]` and `[target]`. Each of the first four has a
`kind`; its other keys are the arguments of that kind. `d3gd init` writes an example with comments; `make pages` writes
this page from the code that reads files.

```toml
iterations = 500

[graph]
kind = "erdos_renyi"
n = 20
p = 0.6

[problem]
kind = "sigmoid_classification"
alpha = 0.1

[algorithm]
kind = "D3GD"
step_size = 0.1
```

A `seed` in a table overrides the one above it. A step size that decays is a table:
`{start = 0.1, power = 0.5, over = 100}` is 0.1 / (1 + k / 100)^0.5 at iteration k.

Files are looked for beside the settings file. A file of links is CSV with the columns `source` and `target`, numbers or
names, and maybe `weight`: $A_{ij}$ for the link from j to i. What is left to 1 is the agent's weight on itself, unless
a row from the agent to itself gives it; no row may sum to more than 1.

Only regular files are read: text up to 64 MiB (2 MiB of settings), arrays up to 1 GiB, unpacked or not. Networks have
up to 10,000,000 agents and 268,435,456 links.

## Outside the tables"""


def page() -> str:
    """Return the page."""
    blocks = [
        _START,
        _table(experiment.run_keys(), d3gd.run),
    ]
    for part, kinds in tables.KINDS.items():
        blocks += [f"## [{part}]", _OPENING[part]]
        for kind, maker in kinds.items():
            blocks += [f'### kind = "{kind}"', _summary(maker), _table(keys_of(maker), maker)]
    blocks += [
        "### Around any method",
        "Keys that every `[algorithm]` takes besides those of its method.",
        _table(wrapping.LOCAL, d3gd.Local),
        _table(wrapping.SMALL, d3gd.Compressed),
        "`optimizer` is a table with a `kind`:",
    ]
    for kind, maker in wrapping.OPTIMIZERS.items():
        blocks += [f'**`kind = "{kind}"`**: {_summary(maker)}', _table(keys_of(maker), maker)]
    blocks += [
        "## [conditions]",
        "What an [unreliable network](../howto/conditions.md) does; `graphs` is a list of CSV files of links.",
        _table(tables.condition_keys(), d3gd.Conditions),
        "## [privacy]",
        "[Differential privacy](../howto/privacy.md) of single examples.",
        _table(keys_of(d3gd.Privacy), d3gd.Privacy),
        "## [target]",
        "Metric = level, such as `disagreement = 1e-3`: the run stops once all are reached.",
        "## A site's file",
        "What [`d3gd site`](../howto/sites.md) reads. `[problem]`, `[algorithm]` and `[privacy]` are as above.",
        _table(keys_of(SiteSettings), SiteSettings),
        f'`[problem]` has one more `kind`, `"own_table"`: {_summary(own_table)}',
        _table(keys_of(own_table), own_table),
        "Each neighbour is a table `[[hears]]` or `[[heard_by]]`:",
        _table(keys_of(Other), Other),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _summary(maker: Callable[..., Any]) -> str:
    """Return the first paragraph of a docstring."""
    first = " ".join(markdown(sections(maker)[""].split("\n\n")[0]).split()).removeprefix("Return ")
    return first[:1].upper() + first[1:]


def _table(keys: Keys, described: Callable[..., Any]) -> str:
    """Return the keys as a table: what each must be, its default, and what its docstring says."""
    if not keys:
        return ""
    about, defaults = arguments(described), inspect.signature(described).parameters
    rows = ["| key | must be | default | |", "|---|---|---|---|"]
    for key, (hint, required) in keys.items():
        default = "required" if required else _default(defaults[key].default)
        cells = (f"`{key}`", words(hint), default, about.get(key, ""))
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def _default(value: Any) -> str:
    return "" if value is None or value == () else f"`{to_toml(value)}`"
