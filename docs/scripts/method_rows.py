"""Write each method's rows of comparisons into its page, between the comparison markers.

python docs/scripts/method_rows.py docs/methods docs/results/compare/*/compare.json
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

START, END = "<!-- comparison -->", "<!-- /comparison -->"


def key(name: str) -> str:
    """Return a method's or a page's name without what spelling varies in: ``push_pull`` is ``PushPull``."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def section(page: str, comparisons: list[tuple[str, dict[str, Any]]]) -> str:
    """Return the rows of the method that a page is named after and of its variants, a table for each comparison."""
    parts = []
    for link, content in comparisons:
        rows = [row for row in content["markdown"]["rows"] if key(row[1].split()[0]) == key(page)]
        if rows:
            lines = [content["markdown"]["header"], ["---"] * len(rows[0]), *rows]
            table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
            about = f"{content['title']}, {len(content['seeds'])} seeds"
            links = f"[all methods]({link}), [how to read it](../howto/compare.md#how-to-read-the-table)"
            parts.append(f"On {about} ({links}):\n\n{table}")
    return "\n\n".join(parts)


def filled(text: str, rows: str) -> str:
    """Return a page with what stands between its markers replaced; the end marker is added where it is missing."""
    before, found, after = text.partition(START)
    if not found:
        return text
    rest = after.partition(END)[2] if END in after else after
    return f"{before}{START}\n\n{rows}\n\n{END}{rest}"


def main(pages: Path, files: list[Path]) -> None:
    """Fill every page, and say which methods have none."""
    comparisons = [
        (f"../{file.parent.relative_to(pages.parent).as_posix()}/compare.md", json.loads(file.read_text("utf-8")))
        for file in files
    ]
    written = set()
    for page in sorted(pages.glob("*.md")):
        rows = section(page.stem, comparisons)
        text = page.read_text("utf-8")
        if rows and START in text:
            page.write_text(filled(text, rows), "utf-8")
            written.add(key(page.stem))
    names = {row[1].split()[0] for _, content in comparisons for row in content["markdown"]["rows"]}
    missing = sorted(name for name in names if key(name) not in written)
    print(f"wrote {len(written)} pages" + (f"; no page with {START} for {', '.join(missing)}" if missing else ""))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("give the folder of pages, and the compare.json files of comparisons")
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
