"""What `POST /api/<namespace>/<method>` takes and answers."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from greenroom.protocol.errors import GreenroomError

__all__ = ["API_PATH", "ApiCall", "ApiFailure", "ApiFault", "ApiResult", "api_failure"]

API_PATH: Final = "/api"


class ApiCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request."""

    args: msgspec.Raw
    """An object with a member for each argument."""


class ApiResult(msgspec.Struct, frozen=True, kw_only=True):
    """The call was carried out."""

    ok: Literal[True] = True
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """What the method gave back; absent if it gives back nothing."""


class ApiFault(msgspec.Struct, frozen=True):
    """Why a call failed."""

    code: str
    """What a program goes by."""
    message: str
    """A sentence for a person."""
    details: dict[str, Any]
    """`endpoint` is the method, and `field` the argument at fault, if one is; the rest depends on the code."""


class ApiFailure(msgspec.Struct, frozen=True, kw_only=True):
    """The call was refused, or failed."""

    ok: Literal[False] = False
    error: ApiFault


def api_failure(error: GreenroomError, endpoint: str) -> ApiFailure:
    """How an error that ended a call of `endpoint` is told."""
    return ApiFailure(error=ApiFault(error.code, error.message, {**error.context, "endpoint": endpoint}))
