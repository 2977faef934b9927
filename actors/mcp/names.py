"""Names of mounted tools: what providers take, and no two alike."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container
from typing import Final

__all__ = ["MOUNTED", "mounted_name"]

MOUNTED: Final = "mcp__"
"""How the name of every mounted tool begins."""

LONGEST: Final = 64
"""What OpenAI, Anthropic and others take of a tool's name: so many letters, digits, `_` and `-`."""

DIGITS: Final = 6
"""Of a hash, at the end of a name."""

_OTHER: Final = re.compile("[^A-Za-z0-9_-]")


def mounted_name(server: str, tool: str, taken: Container[str]) -> str:
    """`mcp__<server>__<tool>`, with `_` for what a name cannot hold.

    One that is too long, or is taken already, ends with a few digits of a hash of both names, so that the same tool has
    the same name each time.
    """
    plain = f"{MOUNTED}{_OTHER.sub('_', server)}__{_OTHER.sub('_', tool)}"
    name, hashed = plain, f"{server}\0{tool}"
    while len(name) > LONGEST or name in taken:
        digest = hashlib.sha256(hashed.encode("utf-8", "surrogatepass")).hexdigest()
        name = f"{plain[: LONGEST - DIGITS - 1]}_{digest[:DIGITS]}"
        hashed = digest  # another one, should this be taken as well
    return name
