"""What several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

from cyclopts import Parameter

__all__ = ["DEFAULT_URL", "PORT", "AsJson", "JsonFile", "Names", "Seconds", "Url"]

PORT: Final = 8642
DEFAULT_URL: Final = f"ws://127.0.0.1:{PORT}/rpc"

_LONGEST: Final = 1e9
"""Seconds; more than thirty years, and few enough for any clock to count in milliseconds."""


def _check_seconds(type_: Any, value: float | None) -> None:
    if value is not None and not 0 <= value <= _LONGEST:
        raise ValueError(f"Give seconds, from 0 to {_LONGEST:.0f}.")


Seconds: TypeAlias = Annotated[float, Parameter(validator=_check_seconds)]
"""A duration; anything but a number that a clock can wait for is wrong usage."""


def _check_names(type_: Any, names: list[str] | None) -> None:
    seen: set[str] = set()
    for name in names or ():
        if not name.strip():
            raise ValueError("A terminal needs a name.")
        if name in seen:
            raise ValueError(f"There can be one terminal {name} only.")
        seen.add(name)


Names: TypeAlias = Annotated[list[str] | None, Parameter(negative=(), validator=_check_names)]
"""Names of terminals, each given once."""

Url: TypeAlias = Annotated[str, Parameter(name="--url", env_var="GREENROOM_URL", help="The gateway to talk to.")]
AsJson: TypeAlias = Annotated[
    bool, Parameter(name="--json", negative=(), help="Print JSON for a program instead of text for a person.")
]

JsonFile: TypeAlias = Annotated[Path, Parameter(allow_leading_hyphen=True)]
"""A file, or - for standard input."""
