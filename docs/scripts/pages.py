"""Write the pages that follow from code and results: python -m docs.scripts.pages, or make pages.

Tables that take long to compute have scripts of their own, see make tables.
"""

import json
from collections.abc import Callable
from pathlib import Path

from d3gd.algorithms import catalogue
from docs.scripts import between, claims, commands, methods, settings

DOCS = Path(__file__).parents[1]


def all_pages() -> dict[str, Callable[[], str]]:
    """Return every such page by its path under docs, with the function that writes it."""
    of_methods = {
        f"methods/{name}.md": lambda name=name, method=method: methods.page(name, method)
        for name, method in catalogue.methods().items()
    }
    return {
        **of_methods,
        "methods/README.md": methods.index,
        "reference/settings.md": settings.page,
        "reference/commands.md": commands.page,
        "results/reproduction.md": _reproduction,
        "explanation/perron.md": _perron,
    }


def _reproduction() -> str:
    """Return the page on the reproduction with the table of claims."""
    found = json.loads((DOCS / "results/claims.json").read_text(encoding="utf-8"))
    page = (DOCS / "results/reproduction.md").read_text(encoding="utf-8")
    return between.filled(page, "claims", claims.table(found))


def _perron() -> str:
    """Return the page on PerronD3GD with the study's table of held-out cells."""
    study = (DOCS / "results/study/study.md").read_text(encoding="utf-8")
    section = study.partition("\n### Held out\n")[2].partition("\n#")[0]
    table = "\n".join(line for line in section.splitlines() if line.startswith("|"))
    page = (DOCS / "explanation/perron.md").read_text(encoding="utf-8")
    return between.filled(page, "held out", table)


if __name__ == "__main__":
    for name, text in all_pages().items():
        (DOCS / name).write_text(text(), encoding="utf-8")
    print(f"wrote {len(all_pages())} pages into docs")
