"""Failures of a model's server as `ProviderError`, and when another try is worth it."""

from __future__ import annotations

import email.utils
from collections.abc import Mapping
from typing import Any, Final

import httpx

from greenroom.actors.providers.arguments import decode
from greenroom.protocol.errors import ProviderError
from greenroom.protocol.schemas.gates import is_record

__all__ = [
    "overrun",
    "protocol_failure",
    "retry_after",
    "silence",
    "status_failure",
    "stream_failure",
    "transport_failure",
    "truncated",
]

_OVERLOADED: Final = 529
"""What Anthropic's servers answer then; it is in no RFC."""
_SPENT: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
"""Waiting does not help against these."""
_BUSY: Final = frozenset(
    {"overloaded_error", "overloaded", "server_overloaded", "rate_limit_error", "rate_limit_exceeded"}
)

_LONGEST_WORDS: Final = 500


def status_failure(response: httpx.Response, body: bytes, now: float) -> ProviderError:
    """What an answer other than 200 means. `now` is the wall clock's, in seconds since 1970."""
    status = response.status_code
    word, message = _told(decode(body))
    spent = word in _SPENT
    if status in (401, 403):
        code, advice = "AUTH", "look at the key that the provider was given, and at what it may do"
    elif status == 408:
        code, advice = "TIMEOUT", "try again"
    elif status == 429:
        code, advice = "RATE", "its quota is used up" if spent else "ask less often"
    elif status == _OVERLOADED:
        code, advice = "OVERLOAD", "try again later"
    elif status >= 500:
        code, advice = "SERVER", "try again later"
    else:
        code, advice = "REQUEST", "look at the model's name, the base URL and what was sent"
    context: dict[str, Any] = {"status": status}
    if (status in (408, 429) or status >= 500) and not spent:
        context["retryable"] = True
    if (wait := retry_after(response.headers, now)) is not None:
        context["retry_after"] = wait
    words = f" It said: {message}" if message else ""
    return ProviderError(code, f"{response.url.host} answered {status}: {advice}.{words}", context)


def stream_failure(host: str, error: object) -> ProviderError:
    """What an error within a stream means."""
    word, message = _told(error)
    busy = word in _BUSY or word in ("429", "503", str(_OVERLOADED))
    return ProviderError(
        "OVERLOAD" if busy else "SERVER",
        f"{host} ended its answer with an error{f' ({word})' if word else ''}{f': {message}' if message else ''}.",
        {"retryable": True} if busy else None,
    )


def transport_failure(host: str, error: httpx.HTTPError) -> ProviderError:
    """What a broken connection means."""
    if isinstance(error, httpx.PoolTimeout):
        return ProviderError(
            "TIMEOUT", f"All connections to {host} are in use; allow more, or call less at a time.", {"retryable": True}
        )
    if isinstance(error, httpx.TimeoutException):
        return ProviderError("TIMEOUT", f"{host} was silent for too long; try again later.", {"retryable": True})
    if isinstance(error, httpx.TransportError):
        kind = type(error).__name__
        return ProviderError(
            "NETWORK",
            f"The connection to {host} failed ({kind}); look at the base URL and the network.",
            {"retryable": True},
        )
    return ProviderError("REQUEST", f"{host} cannot be asked ({type(error).__name__}); look at the base URL.")


def overrun(host: str) -> ProviderError:
    """The deadline of the whole call has passed."""
    return ProviderError("TIMEOUT", f"{host} did not end its answer in the time for the whole call; allow it more.")


def silence(host: str, seconds: float) -> ProviderError:
    """Nothing of an answer came for so long."""
    return ProviderError(
        "TIMEOUT", f"{host} sent nothing of its answer for {seconds:g} s; try again later.", {"retryable": True}
    )


def protocol_failure(host: str, what: str) -> ProviderError:
    """The server speaks another language."""
    return ProviderError("PROTOCOL", f"{host} sent {what}; look at the base URL, and at which API the server has.")


def truncated(host: str) -> ProviderError:
    """The stream ended, and the answer had not."""
    return ProviderError("TRUNCATED", f"{host} closed the stream before the end of its answer; try again.")


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that a server wants to be left alone: `retry-after-ms`, or `Retry-After` (RFC 9110, 10.2.3)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    told = headers.get("retry-after")
    seconds = _number(told)
    if seconds is not None or told is None:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(told).timestamp() - now)
    except ValueError:
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _told(body: object) -> tuple[str, str]:
    """The code or type of an error, and its words. Servers put them in many places."""
    error: object = body.get("error", body) if is_record(body) else body
    if isinstance(error, str):
        return "", error[:_LONGEST_WORDS]
    if not is_record(error):
        return "", ""
    words = [str(error[name]) for name in ("code", "type") if isinstance(error.get(name), str | int)]
    known = next((word for word in words if word in _SPENT or word in _BUSY), "")
    message = error.get("message")
    return known or next(iter(words), ""), message[:_LONGEST_WORDS] if isinstance(message, str) else ""
