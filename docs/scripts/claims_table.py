"""Print the claims of a reproduction as a table, for docs/results/reproduction.md: give it results/claims.json."""

import json
import sys
from pathlib import Path
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


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("give the claims.json that d3gd reproduce wrote, e.g. results/claims.json")
    print(table(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
