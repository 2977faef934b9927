"""A contract: one schema, compiled once, that checks, reads and explains values."""

from __future__ import annotations

from typing import Any, final

from greenroom.protocol.schemas.coerce import Refused, check, coerce
from greenroom.protocol.schemas.explain import Fault, explain
from greenroom.protocol.schemas.shape import compile_shape
from greenroom.protocol.schemas.subschemas import Schema

__all__ = ["Contract"]


@final
class Contract:
    """What a schema asks, ready to be asked often. The schema is read once and not kept.

    With `exact`, places where anything goes take JSON only, as a copy of its own. Raises `ToolError` (TOOL) for a
    schema of too many parts; the methods raise nothing, whatever the value.
    """

    __slots__ = ("_shape",)

    def __init__(self, schema: Schema, *, exact: bool = False) -> None:
        self._shape = compile_shape(schema, exact=exact)

    def check(self, value: object) -> bool:
        """Whether the value fits as it stands."""
        return check(self._shape, value)

    def parse(self, value: object) -> Any | Refused:
        """The value as it is to be read, or `REFUSED`. What `check` takes is taken, and the result passes `check`."""
        return coerce(self._shape, value)

    def explain(self, value: object) -> list[Fault]:
        """Why `parse` refuses the value; an empty list exactly when it does not."""
        return explain(self._shape, value)
