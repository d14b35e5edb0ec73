"""The claims of the paper as a table: docs/results/claims.json, which `make reproduce` wrote."""

from typing import Any


def table(content: dict[str, Any]) -> str:
    """Return the Markdown table of what ``d3gd reproduce`` wrote to ``claims.json``."""
    rows = [
        f"| claim | paper | ours: median [quartiles] of {len(content['seeds'])} seeds | verdict |",
        "|---|---|---|---|",
    ]
    for claim in content["claims"]:
        what = f"{claim['claim']}<br><sub>{claim['measure']}</sub>"
        ours = "<br>".join(f"{_short(one['label'])}: {one['shown']}" for one in claim["ours"])
        rows.append(f"| {what} | {claim['paper']} | {ours} | {claim['verdict']} |")
    return "\n".join(rows)


def _short(label: str) -> str:
    return label.replace("D3GD (global)", "global").replace("D3GD (decentralized)", "decentralized")
