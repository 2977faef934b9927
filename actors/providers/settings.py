"""What a model is opened with, whoever provides it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, field

from greenroom.actors.config.credentials import Credentials
from greenroom.runtime.provider import Provider

__all__ = ["ModelSettings", "OpenModel"]


class ModelSettings(Struct, frozen=True, kw_only=True):
    """The table `[llm]` of a configuration, with the credentials that its references are looked up in."""

    model: str | None = None
    """The name that the provider has for its model."""
    base_url: str | None = None
    """Where it is reached, if not at the provider's own address."""
    key: str | None = None
    """The name of a credential: `credentials.get(key)`. The secret itself is nowhere in the settings."""
    script: Path | None = None
    """What a model that plays a script plays."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What only this provider knows of, as it stands in the file; it is the provider's to check."""
    credentials: Credentials = field(default_factory=Credentials)


OpenModel: TypeAlias = Callable[[ModelSettings], AbstractAsyncContextManager[Provider]]
"""What a provider of the seam `llm` is: it gives a model for the length of a block."""
