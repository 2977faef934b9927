"""The extra `mcp`: what is said where it is missing."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from greenroom.protocol.errors import ConfigError

__all__ = ["needing_mcp"]


@contextmanager
def needing_mcp() -> Generator[None]:
    """Around an import of what needs the package mcp. Raises ConfigError EXTRA, with what to install, without it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise ConfigError(
            "EXTRA", "MCP needs the package mcp: run `pip install 'greenroom[mcp]'`.", {"package": "mcp"}
        ) from None
