"""The navigation of the site, made from the lists of links that its index pages have."""

import re

_LINK = re.compile(r"^(?:- |\| )\[([^]]+)\]\(([^)#]+)\.md\)", re.MULTILINE)
INDEXES = ("docs/index", "docs/methods/README", "docs/reference/api/README")


def sections(text: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the headings of a page, each with the titles and pages that the lists and tables below it link first."""
    pieces = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    headings = ["", *pieces[1::2]]
    return [
        (heading, found) for heading, part in zip(headings, pieces[::2], strict=True) if (found := _LINK.findall(part))
    ]


def with_navigation(name: str, text: str) -> str:
    """Return a page's text; that of an index with its trees of pages, which do not show in the page itself."""
    if name not in INDEXES:
        return text
    trees = []
    for heading, pages in sections(text):
        caption = f":caption: {heading}\n" if heading else ""
        entries = "\n".join(f"{title} <{page}>" for title, page in pages)
        trees.append(f"```{{toctree}}\n:hidden:\n{caption}\n{entries}\n```")
    return "\n\n".join([text, *trees]) + "\n"
