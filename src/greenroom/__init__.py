"""greenroom: agents, people and workflow runs ask each other whole forms, and nobody waits in a circle.

The names are in `__init__.pyi`, where type checkers find them too, each with the module that holds it. That is imported
when the name is first used: who needs the client alone does not wait for databases and models.
"""

import ast
from importlib import import_module
from pathlib import Path

_PLACES = {
    alias.name: f"{__name__}.{node.module}"
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8")).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}

__all__ = sorted(_PLACES)  # pyright: ignore[reportUnsupportedDunderAll]  # it reads the stub


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
