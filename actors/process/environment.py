"""The environment of a command: what there is around it, without secrets and without what is greenroom's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["scrubbed"]

_SECRET: Final = re.compile("KEY|SECRET|TOKEN|PASSWORD", re.IGNORECASE)
_OURS: Final = "GREENROOM_"

_QUIET: Final = {"NO_COLOR": "1", "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GREENROOM_SHELL": "1"}
"""Nobody is there to look at colours or to turn pages; and a program may want to know who has started it."""


def scrubbed(ambient: Mapping[str, str], explicit: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables of `ambient` but for those whose name speaks of a key, a secret, a token or a password, and for
    greenroom's; with what keeps programs from waiting for a person; and with the `explicit` ones, whatever they are."""
    kept = {
        name: value
        for name, value in ambient.items()
        if not _SECRET.search(name) and not name.upper().startswith(_OURS)
    }
    return kept | _QUIET | dict(explicit or {})
