"""Tool calls and what becomes of them, as they cross a wire or a model's context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeGuard, final

from msgspec import Struct, StructMeta

from greenroom.protocol.schemas.subschemas import Schema

__all__ = ["ToolCall", "ToolDefinition", "ToolFailure", "ToolResult", "ToolSuccess", "is_tool_call"]


@final
class ToolDefinition(Struct, frozen=True, omit_defaults=True):
    """A tool as it is shown to a model. A member that the tool does not have is absent, not null."""

    name: str
    description: str | None = None
    parameters: Schema | None = None


class _WithAside(StructMeta):
    """Lets a struct be built with values that are no fields of it: every field of a struct would be encoded."""

    if not TYPE_CHECKING:  # to a checker both values are fields, so that it knows how a call is built

        def __call__(self, *args: Any, caller: object = None, invalid: str | None = None, **fields: Any) -> Any:
            call = super().__call__(*args, **fields)
            call.__dict__.update(caller=caller, invalid=invalid)
            return call


@final
class ToolCall(Struct, frozen=True, dict=True, metaclass=_WithAside):
    """A call of a tool by name. `id` is the model's, comes back on the result, and need not be unique.

    `caller` and `invalid` stay in this process: they are neither encoded nor compared nor printed, and a call that was
    decoded, copied or replaced has none. `caller` is whatever the invoker wants the handler to know of whom it acts
    for; nobody verifies it. `invalid` is why the model's arguments could not be read (`arguments` is then empty): such
    a call is answered, never run.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    if TYPE_CHECKING:
        caller: object = None
        invalid: str | None = None
    else:
        caller: ClassVar = None
        invalid: ClassVar = None


if TYPE_CHECKING:
    _True: TypeAlias = Literal[True]
    _False: TypeAlias = Literal[False]
else:  # a struct knows no literal bools
    _True = _False = bool


@final
class ToolSuccess(Struct, frozen=True, kw_only=True):
    """What a call returned, unchanged: `value` is there also when it is null."""

    id: str
    name: str
    success: _True = True
    value: Any


@final
class ToolFailure(Struct, frozen=True, kw_only=True):
    """Why a call returned nothing: `error` is the text of what was raised, and nothing else of it."""

    id: str
    name: str
    success: _False = False
    error: str


ToolResult: TypeAlias = ToolSuccess | ToolFailure


def is_tool_call(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether the value is a mapping with a text `id`, a text `name` and a dict of `arguments`. Never raises.

    Neither `caller` nor the tool's schema is looked at: a call may be well formed and its arguments wrong.
    """
    try:
        return (
            isinstance(value, Mapping)
            and isinstance(value["id"], str)
            and isinstance(value["name"], str)
            and isinstance(value["arguments"], dict)
        )
    except Exception:  # a mapping that cannot be read is no call
        return False
