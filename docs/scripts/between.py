"""Tables within pages: what is between two comments of a page, `<!-- name -->` and `<!-- /name -->`."""

from pathlib import Path

DOCS = Path(__file__).parents[1]


def filled(text: str, name: str, inside: str) -> str:
    """Return a page with what is between the comments of this name replaced."""
    first, last = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, opened, rest = text.partition(first)
    _, closed, after = rest.partition(last)
    if not opened or not closed or last in after:
        raise SystemExit(
            f"a page needs {first} and {last}, once each; found {text.count(first)} and {text.count(last)}"
        )
    return f"{before}{first}\n\n{inside.strip()}\n\n{last}{after}"


def write(page: str, name: str, inside: str) -> None:
    """Replace a table of a page, given by its path under docs."""
    path = DOCS / page
    path.write_text(filled(path.read_text(encoding="utf-8"), name, inside), encoding="utf-8")
    print(f"wrote {name} into docs/{page}")
