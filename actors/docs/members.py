"""The members of a struct as a reader of JSON sees them: name, type, default, and what its source says of it."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
import types
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, Union, cast, get_args, get_origin, get_type_hints

import msgspec

__all__ = ["Member", "members_of", "type_text"]

Link = Callable[[type[msgspec.Struct]], str]
"""How a struct is named where it is a type."""

_SCALARS: Final[dict[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
    Any: "any",
}


class Member(msgspec.Struct, frozen=True):
    """One member of a JSON object."""

    name: str
    type: str
    default: str | None
    """As JSON in code marks; empty where an absent member is simply absent; None if the member is required."""
    about: str


def members_of(struct: type[msgspec.Struct], link: Link) -> list[Member]:
    """The members of a struct as they are on the wire. One whose type no JSON value has is left out."""
    hints = get_type_hints(struct, include_extras=True)
    about = _docstrings(struct)
    found: list[Member] = []
    tag = struct.__struct_config__.tag
    if tag is not None:
        found.append(Member(struct.__struct_config__.tag_field or "type", json.dumps(tag), None, ""))
    for field in msgspec.structs.fields(struct):
        text = type_text(hints[field.name], link)
        if text:
            found.append(Member(field.encode_name, text, _default(field), about.get(field.name, "")))
    return found


def type_text(hint: Any, link: Link) -> str:
    """A type in JSON's words. Empty if no JSON value has it."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return link(hint)
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _bounded(type_text(arguments[0], link), arguments[1:])
    if origin is Literal:
        return " or ".join(json.dumps(value) for value in arguments)
    if origin in (Union, types.UnionType):
        alternatives = dict.fromkeys(type_text(argument, link) for argument in arguments)
        return " or ".join(text for text in alternatives if text)
    if origin in (list, tuple):
        return f"array of ({entry})" if " or " in (entry := type_text(arguments[0], link)) else f"array of {entry}"
    if origin is dict:
        value = type_text(arguments[1], link)
        return "object" if value == "any" else f"object of ({value})"
    return ""


def _bounded(text: str, metas: tuple[Any, ...]) -> str:
    for meta in metas:
        if isinstance(meta, msgspec.Meta):
            text = meta.title or text
            if meta.max_length is not None:
                text += f" of at most {meta.max_length} characters"
            if meta.ge is not None and meta.le is not None:
                text += f" from {meta.ge} to {meta.le}"
            elif meta.ge is not None:
                text += f" from {meta.ge}"
            elif meta.gt is not None:
                text += f" above {meta.gt}" if meta.le is None else f" above {meta.gt}, up to {meta.le}"
    return text


def _default(field: msgspec.structs.FieldInfo) -> str | None:
    if field.required:
        return None
    default: Any = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return "" if default is msgspec.UNSET else f"`{msgspec.json.encode(default).decode()}`"


@cache
def _docstrings(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The text beneath each member in the source, those of its bases included."""
    found: dict[str, str] = {}
    for base in reversed(struct.__mro__):
        if not issubclass(base, msgspec.Struct) or base is msgspec.Struct:
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        body = cast("ast.ClassDef", tree).body
        for statement, following in pairwise(body):
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and isinstance(following, ast.Expr)
                and isinstance(following.value, ast.Constant)
                and isinstance(following.value.value, str)
            ):
                found[statement.target.id] = " ".join(inspect.cleandoc(following.value.value).split())
    return found
