"""What several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

__all__ = ["DEFAULT_URL", "PORT", "AsJson", "JsonFile", "Url"]

PORT: Final = 8642
DEFAULT_URL: Final = f"ws://127.0.0.1:{PORT}/rpc"

Url: TypeAlias = Annotated[str, Parameter(name="--url", env_var="GREENROOM_URL", help="The gateway to talk to.")]
AsJson: TypeAlias = Annotated[
    bool, Parameter(name="--json", negative=(), help="Print JSON for a program instead of text for a person.")
]

JsonFile: TypeAlias = Annotated[Path, Parameter(allow_leading_hyphen=True)]
"""A file, or - for standard input."""
