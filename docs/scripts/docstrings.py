"""Docstrings of Google style, taken apart and written as Markdown."""

import inspect
import re
from typing import Any

_SECTIONS = ("Args:", "Attributes:", "Example:", "Raises:", "References:", "Returns:", "Yields:")


def sections(described: Any) -> dict[str, str]:
    """Return the sections of an object's docstring; what comes first has no name."""
    doc = inspect.getdoc(described) or ""
    pieces = re.split(rf"^({'|'.join(_SECTIONS)})\n", doc, flags=re.MULTILINE)
    named = zip(pieces[1::2], pieces[2::2], strict=True)
    return {"": pieces[0].strip(), **{name: inspect.cleandoc(text) for name, text in named}}


def arguments(described: Any) -> dict[str, str]:
    """Return what a docstring says on each argument or attribute, in one line of Markdown."""
    found = sections(described)
    text = found.get("Args:") or found.get("Attributes:") or ""
    pieces = re.split(r"^(\w+): ", text, flags=re.MULTILINE)[1:]
    return {name: " ".join(markdown(about).split()) for name, about in zip(pieces[::2], pieces[1::2], strict=True)}


def markdown(text: str) -> str:
    """Return a docstring's text as Markdown: its displays and inline formulas between dollars."""
    text = re.sub(r"\.\. math:: (.+)", r"$$\1$$", text)

    def display(match: re.Match[str]) -> str:
        body = inspect.cleandoc(match.group(1))
        aligned = f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}" if "&" in body else body
        return f"$$\n{aligned}\n$$\n"

    text = re.sub(r"\.\. math::\n((?:    .+\n?)+)", display, text)
    text = re.sub(r'^(``"\w+"``)\n    ', r"- \1: ", text, flags=re.MULTILINE)
    text = re.sub(r":math:`([^`]+)`", lambda match: f"${' '.join(match.group(1).split())}$", text)
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")
