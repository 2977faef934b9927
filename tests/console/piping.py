"""Input that is piped in, and what is printed for it."""

from __future__ import annotations

import io
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from greenroom.actors.console import Console, LinePrompts, LineReader
from greenroom.protocol.forms import Form, Value

__all__ = ["Walk", "form_of", "piped", "walk"]


@contextmanager
def piped(text: str | bytes) -> Generator[LineReader]:
    """A reader of a pipe that holds the text and then ends."""
    source, sink = os.pipe()
    try:
        os.write(sink, text.encode() if isinstance(text, str) else text)
        os.close(sink)
        yield LineReader(source)
    finally:
        os.close(source)


def form_of(*fields: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    """A schema of these fields; one without a control is a text, one without a name is called x."""
    return {"fields": [{"control": "text", "name": "x", **field} for field in fields], **members}


class Walk:
    """A form that was walked through, and how it went."""

    def __init__(self, form: Form, out: io.StringIO) -> None:
        self.form = form
        self._out = out
        self.values: dict[str, Value] = {}
        self.left = ""
        """What was not read of the input."""

    @property
    def lines(self) -> list[str]:
        """What was printed."""
        return self._out.getvalue().splitlines()


async def walk(schema: Mapping[str, Any] | Form, text: str | bytes, *, strict: bool = False) -> Walk:
    """Walk through a form with these lines. Raises what the walk raises."""
    form = schema if isinstance(schema, Form) else Form(schema)
    result = Walk(form, io.StringIO())
    with piped(text) as reader:
        result.values = await Console(LinePrompts(reader, result._out, strict=strict)).ask(form)
        result.left = await reader.rest() or ""
    return result
