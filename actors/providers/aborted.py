"""What every provider does whose token was set."""

from __future__ import annotations

from greenroom.protocol.agents import ProviderResult
from greenroom.protocol.errors import ProviderError
from greenroom.runtime.cancel import CancelToken

__all__ = ["refuse_if_set"]


def refuse_if_set(cancel: CancelToken, partial: ProviderResult) -> None:
    """Raise what a provider raises that was told to stop."""
    if cancel.is_set():
        error = ProviderError("ABORTED", "The provider was told to stop.")
        error.partial = partial
        raise error
