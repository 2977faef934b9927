"""The meter of OpenTelemetry, as whoever started the process has set it up."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from greenroom.protocol.errors import ConfigError
from greenroom.runtime.policies import Meter

__all__ = ["open_opentelemetry"]


@asynccontextmanager
async def open_opentelemetry() -> AsyncGenerator[Meter]:
    """A meter of the process's own provider, which `opentelemetry-instrument greenroom serve` sets up and ends.

    Raises ConfigError EXTRA without OpenTelemetry's package.
    """
    try:
        from opentelemetry import metrics
    except ModuleNotFoundError:
        raise ConfigError(
            "EXTRA", "Figures are taken by OpenTelemetry: run `pip install 'greenroom[telemetry]'`."
        ) from None
    yield metrics.get_meter("greenroom")
