"""The reference of all public names, on the pages docs/reference/api.

A page says in a comment what it is about, `<!-- api: d3gd.run d3gd.graphs.* -->`; on the site, the signatures and
docstrings of these names take its place. A star stands for all public names of a module.
"""

import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import d3gd

PAGES = Path(__file__).parents[1] / "reference" / "api"
_COMMENT = re.compile(r"<!-- api: ([^>]+) -->")
_ARRAYS = re.compile(r"~?(?:numpy\.)?ndarray\[tuple\[~?(?:typing\.)?Any, \.\.\.\], [^]]*\]\]")


def public() -> list[str]:
    """Return every public name: those of the package, and those of the modules that it offers."""
    names = [f"d3gd.{name}" for name in d3gd._HOMES]
    for room in d3gd._ROOMS:
        names += members(f"d3gd.{room}")
    return names


def members(module: str) -> list[str]:
    """Return the public names of a module: its `__all__`, or else what it defines."""
    found = pkgutil.resolve_name(module)
    named = getattr(found, "__all__", None) or [
        name
        for name, value in vars(found).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == found.__name__
    ]
    return [f"{module}.{name}" for name in named]


def shown(text: str) -> Iterator[str]:
    """Yield the names that the comments of a page ask for."""
    for wanted in _COMMENT.findall(text):
        for name in wanted.split():
            yield from _members_here(name.removesuffix(".*")) if name.endswith(".*") else [name]


def _members_here(module: str) -> list[str]:
    """Return a module's public names without those that the package itself offers, which stand elsewhere."""
    return [name for name in members(module) if name.rpartition(".")[2] not in d3gd._HOMES]


def with_docstrings(text: str) -> str:
    """Return a page with its comments replaced by directives of autodoc."""

    def directives(match: re.Match[str]) -> str:
        body = "\n".join(_directive(name) for name in shown(match.group()))
        return f"```{{eval-rst}}\n{body}\n```"

    return _COMMENT.sub(directives, text)


def _directive(name: str) -> str:
    value = pkgutil.resolve_name(name)
    if isinstance(value, ModuleType):
        return f".. automodule:: {name}\n"
    if inspect.isclass(value):  # a method's members are those of its base class, which is on a page of its own
        own = not issubclass(value, d3gd.Algorithm) or value is d3gd.Algorithm
        return f".. autoclass:: {name}\n" + ("   :members:\n" if own else "")
    return f".. {'autofunction' if callable(value) and hasattr(value, '__name__') else 'autodata'}:: {name}\n"


def readable(app: Any, what: str, name: str, obj: Any, options: Any, signature: str, result: str) -> tuple[Any, Any]:
    """Return a signature in which arrays have short types."""
    return tuple(_ARRAYS.sub("ndarray", part) if part else part for part in (signature, result))


def known(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Accept a reference to a name that exists but is not public: it is shown without a link."""
    target = str(node.get("reftarget", ""))
    if not target.startswith("d3gd."):
        return None
    try:
        pkgutil.resolve_name(target)
    except (ImportError, AttributeError):
        return None
    return content
