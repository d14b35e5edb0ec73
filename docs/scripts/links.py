"""Check that every link within a built site leads somewhere: python docs/scripts/links.py build/site.

Links to other hosts are not opened.
"""

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to and which places it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element's links and its name."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


@cache
def page(path: Path) -> Page:
    """Return a page of the site."""
    return Page(path.read_text(encoding="utf-8"))


def broken(site: Path) -> list[str]:
    """Return the links that lead nowhere, each with its page."""
    found = []
    for path in sorted(site.rglob("*.html")):
        for link in page(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            missing = not target.is_file()
            place = unquote(parts.fragment)
            if missing or (place and target.suffix == ".html" and place not in page(target).places):
                found.append(f"{path.relative_to(site)}: {link}")
    return found


if __name__ == "__main__":
    site = Path(sys.argv[1]).resolve()
    lost = broken(site)
    count = sum(1 for _ in site.rglob("*.html"))
    print(*lost, f"{count} pages, {len(lost)} broken links", sep="\n")
    sys.exit(bool(lost))
