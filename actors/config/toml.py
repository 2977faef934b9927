"""Reading a TOML file that a person wrote."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from greenroom.protocol.errors import ConfigError

__all__ = ["read_toml"]


def read_toml(path: Path, *, what: str, code: str) -> dict[str, Any]:
    """The document in a file of UTF-8. Blocks while it reads.

    Raises ConfigError: FILE, which says that `what`, such as "The tokens in x.toml", cannot be read, and `code` for
    what is no TOML.
    """
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError("FILE", f"{what} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(code, f"{path} is no TOML: {error}.") from None
