"""What tells one method from another."""

from dataclasses import asdict, is_dataclass
from typing import Any


def describe(settings: Any) -> dict[str, Any]:
    """Return an algorithm's name and settings, ready for JSON; a function is told by its name."""
    fields = asdict(settings) if is_dataclass(settings) and not isinstance(settings, type) else {}
    return {
        "kind": type(settings).__name__,
        # Not by its repr: the address in it would be another one in the process that resumes.
        **{name: getattr(value, "__qualname__", value) if callable(value) else value for name, value in fields.items()},
    }
