"""Settings of the documentation site; `make docs` builds it into build/site.

The source folder is the repository, so that links between pages, the README and the code are those of a checkout.
"""

import sys
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer

import d3gd

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.scripts import api, contents, mathml

project = "d3gd"
author = "The d3gd developers"
project_copyright = "The d3gd developers"
version = release = d3gd.__version__

root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md"]
exclude_patterns = ["build", "src", "tests", "results", "runs", "examples", "benchmarks", "studies", "**/.*", ".*"]
exclude_patterns += ["docs/results/study/tuned", "docs/results/logistic/*/*"]  # beside the runs of studies
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

html_theme = "furo"
html_title = f"d3gd {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"  # neither scripts nor fonts from elsewhere
html_copy_source = False
html_show_search_summary = False  # it would fetch pages, which browsers refuse for files
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0072b2"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
}

myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = False  # types stand in the signature

nitpicky = True  # every reference to a name of the package leads somewhere
nitpick_ignore_regex = [(r"py:.*", r"(?!d3gd\.).*")]


def _read(app: Any, name: str, source: list[str]) -> None:
    """Add to a page what only the site needs: its place in the navigation, and what is said in docstrings."""
    source[0] = contents.with_navigation(name, api.with_docstrings(source[0]))


def _home(app: Any, error: Exception | None) -> None:
    """Let the folder of the site open at its first page."""
    if error is None and app.builder.format == "html":
        text = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=docs/index.html">'
        link = '<title>d3gd</title><a href="docs/index.html">Documentation of d3gd</a>'
        (Path(app.outdir) / "index.html").write_text(f"{text}{link}\n", encoding="utf-8")


def setup(app: Any) -> None:
    """Connect the parts."""
    app.connect("source-read", _read)
    app.connect("build-finished", _home)
    app.connect("autodoc-process-signature", api.readable)
    app.connect("missing-reference", api.known)
    app.add_lexer("csv", TextLexer)
    mathml.setup(app)
