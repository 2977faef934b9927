"""Whether a request may pass, by the token that it presents."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

__all__ = ["Token", "admits"]

Token: TypeAlias = str | Callable[[str | None], bool] | None
"""What has to be presented, or who decides about what was presented (None: nothing was). None: everybody may pass."""

logger = logging.getLogger("greenroom.bridge")


def admits(token: Token, presented: Sequence[str]) -> bool:
    """Whether a request that sent these values may pass. A header that was sent twice is no token."""
    if token is None:
        return True
    if isinstance(token, str):
        return len(presented) == 1 and hmac.compare_digest(_bytes(presented[0]), _bytes(token))
    try:
        # Nothing but True: a validator that is async by mistake returns a coroutine, which would pass as a yes.
        return token(", ".join(presented) if presented else None) is True
    except Exception as error:
        logger.warning("The check of a token raised %s, and the request is refused.", type(error).__name__)
        return False


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
