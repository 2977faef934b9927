"""Which relations are loaded along with rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas.gates import is_record

__all__ = ["Include", "expand_include"]

Include: TypeAlias = Mapping[str, Any]
"""`{relation: true, false or the relations of its rows}`; false is as if it were not there."""


def expand_include(paths: Iterable[str] | None, depth: int) -> dict[str, Any]:
    """The tree that dotted paths spell: `["a.b", "a", "c"]` is `{"a": {"b": True}, "c": True}`.

    Raises `ToolError` TOOL, with `path` and `depth` in its context, for a path of more than `depth` names, or with an
    empty one.
    """
    tree: dict[str, Any] = {}
    for path in paths or ():
        names = path.split(".")
        if len(names) > depth or "" in names:
            told = "has an empty name in it" if "" in names else f"is {len(names)} relations deep"
            raise ToolError(
                "TOOL",
                f"the include path {path!r} {told}; at most {depth} are followed",
                {"path": path, "depth": depth},
            )
        here = tree
        *outer, last = names
        for name in outer:
            below = here.get(name)
            if not is_record(below):
                below = here[name] = {}
            here = below
        here.setdefault(last, True)
    return tree
