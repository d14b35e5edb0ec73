"""Formulas of the site as MathML, which browsers draw without scripts or fonts from elsewhere."""

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

_LOG = logging.getLogger(__name__)
# What docutils does not know, in words that it knows.
_SPELLINGS = [
    (r"\\([bB]igg?)\s*([(\[])", r"\\\1l\2"),
    (r"\\([bB]igg?)\s*([)\]])", r"\\\1r\2"),
    (r"\\dots(?![a-zA-Z])", r"\\ldots"),
    (r"\\textstyle(?![a-zA-Z])", ""),
    (r"(\\(?:bar|hat|tilde)\s*(?:\w|\{[^}]*\}))(?=[_^])", r"{\1}"),  # else indices go below the letter
]


def markup(formula: str, *, display: bool) -> str:
    """Return a formula of LaTeX as MathML."""
    formula = formula.strip()
    for found, known in _SPELLINGS:
        formula = re.sub(found, known, formula)
    if "&" in formula and r"\begin" not in formula:
        formula = rf"\begin{{aligned}}{formula}\end{{aligned}}"
    written = tex2mathml(formula, as_block=display)
    written = re.sub("<mo>([⟨⟩‖])</mo>", r'<mo stretchy="false">\1</mo>', written)
    return written.replace('<mtable class="ams-align">', '<mtable class="ams-align" displaystyle="true">')


def _write(translator: Any, node: Any, *, display: bool) -> None:
    try:
        written = markup(node.astext(), display=display)
    except MathError as error:
        _LOG.warning("formula: %s", error, location=node)
        written = f"<code>{escape(node.astext())}</code>"
    if display:
        anchors = "".join(f'<span id="{name}"></span>' for name in node.get("ids", ()))
        written = f'<div class="math">{anchors}{written}</div>'
    translator.body.append(written)
    raise nodes.SkipNode


def _inline(translator: Any, node: Any) -> None:
    _write(translator, node, display=False)


def _display(translator: Any, node: Any) -> None:
    _write(translator, node, display=True)


def setup(app: Any) -> None:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
