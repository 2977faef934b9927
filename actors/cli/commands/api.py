"""`greenroom api`: what programs can call of a gateway over HTTP, as an OpenAPI document."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from greenroom.actors.cli.composing import open_composition, read_settings
from greenroom.actors.config import override
from greenroom.actors.remote.openapi import openapi_document

__all__ = ["api"]


async def api(*, config: Path | None = None, services: str | None = None) -> int:
    """Print the OpenAPI document of the remote methods that `greenroom serve` would offer.

    Nothing is served, and nothing is recorded.

        greenroom api --services release > openapi.json

    Parameters
    ----------
    config
        The configuration that `serve` is given.
    services
        The module of services that `serve` is given.
    """
    settings = override(await read_settings(config), remote={"services": services})
    async with open_composition(settings, recorded=False) as runtime:
        print(json.dumps(openapi_document(runtime.remote, title="greenroom", version=version("greenroom")), indent=2))
    return 0
