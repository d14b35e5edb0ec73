"""One HTML file from the page's parts, with all text escaped."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from d3gd.validation import one_line

_HERE = Path(__file__).parent
_SCRIPTS = {
    "runs": ("core.js", "chart.js", "network.js", "matrix.js", "agent.js", "runs.js"),
    "table": ("core.js", "chart.js", "table.js"),
}
# What could end a script element or, in old browsers, a line of it; and halves of characters, which no file can hold.
_ESCAPED = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def page(title: str, kind: str, content: Mapping[str, object]) -> str:
    """Return the page; see :func:`d3gd.report.write_page`."""
    script = '"use strict";\n' + "\n".join((_HERE / name).read_text("utf-8") for name in _SCRIPTS[kind])
    # Only this script may run, whatever a name or a setting holds; nothing is loaded from anywhere.
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "title": html.escape(one_line(title)).encode("utf-8", "replace").decode(),
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'",
        "style": (_HERE / "style.css").read_text("utf-8"),
        "data": embedded(content),
        "script": script,
    }
    template = (_HERE / "page.html").read_text("utf-8")
    pieces = template.split("{{")
    filled = [f"{parts[name]}{rest}" for name, rest in (piece.split("}}", 1) for piece in pieces[1:])]
    return "".join([pieces[0], *filled])


def embedded(content: Any) -> str:
    r"""Return JSON that is safe inside a script element.

    Example:
        >>> embedded({"name": "</script>"})
        '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
