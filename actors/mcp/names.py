"""Names of mounted tools: what providers take, and no two alike."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container
from typing import Final

__all__ = ["mounted_name"]

LONGEST: Final = 64
"""What OpenAI, Anthropic and others take of a tool's name: so many letters, digits, `_` and `-`."""

_OTHER: Final = re.compile("[^A-Za-z0-9_-]")


def mounted_name(server: str, tool: str, taken: Container[str]) -> str:
    """`mcp__<server>__<tool>`, with `_` for what a name cannot hold.

    One that is too long, or is taken already, ends with a few digits of a hash of both names, so that the same tool has
    the same name each time.
    """
    plain = f"mcp__{_OTHER.sub('_', server)}__{_OTHER.sub('_', tool)}"
    name, digest = plain, hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()
    digits = 6
    while len(name) > LONGEST or name in taken:
        name = f"{plain[: LONGEST - digits - 1]}_{digest[:digits]}"
        digits += 2
    return name
