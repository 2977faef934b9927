"""Errors on the wire: GreenroomError to JSON-RPC's error object and back.

The numbers are those of JSON-RPC 2.0 (section 5.1) and, for cancelled requests, of the Language Server Protocol. They
only sort: programs go by `data.code`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from greenroom.protocol.errors import (
    ActorDeadlock,
    ActorError,
    FormError,
    GreenroomError,
    JournalError,
    RemoteError,
    RpcError,
    TerminalDeadlock,
    TerminalError,
    WorkflowError,
)

__all__ = [
    "CANCELLED",
    "INTERNAL",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "NOT_FOUND",
    "NUMBERS",
    "PARSE_ERROR",
    "REFUSED",
    "ErrorData",
    "Failure",
    "error_of",
    "failure_of",
]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603
NOT_FOUND: Final = -32001
REFUSED: Final = -32002
CANCELLED: Final = -32800

NUMBERS: Final = {
    PARSE_ERROR: ("PARSE", "The message is no JSON text that can be read; the answer has no id."),
    INVALID_REQUEST: ("REQUEST", "The JSON is no request, the batch is empty or too long, or the id is in use."),
    METHOD_NOT_FOUND: ("METHOD", "No method has that name; `nearest` is the closest one, if one is close."),
    INVALID_PARAMS: ("PARAMS", "The params do not fit; `field` names the member at fault, never its value."),
    INTERNAL: ("INTERNAL", "A fault of the server; its log has the details under `correlation`."),
    CANCELLED: ("CANCELLED", "The caller cancelled the call."),
    NOT_FOUND: ("TARGET, UNKNOWN", "There is no terminal, or no run, of that name; `known` lists those there are."),
    REFUSED: ("any other", "The method's own refusal, told by its code."),
}
"""For each number, the `data.code` that comes with it and what it means, in the order in which they are documented."""

_BOUNDARY: Final = {
    "gateway/arguments-invalid": INVALID_PARAMS,
    "gateway/input-invalid": INVALID_PARAMS,
    "gateway/result-invalid": INTERNAL,
    "gateway/internal": INTERNAL,
    "gateway/lookup-failed": INTERNAL,
    "gateway/lookup-not-found": NOT_FOUND,
    "gateway/lookup-unavailable": METHOD_NOT_FOUND,
    "gateway/service-unavailable": METHOD_NOT_FOUND,
    "gateway/method-unavailable": METHOD_NOT_FOUND,
    "gateway/definition-unavailable": METHOD_NOT_FOUND,
}
"""The numbers of what goes wrong between the wire and a remote method."""

_NUMBER_OF: Final = {code: number for number, (code, _) in NUMBERS.items() if number not in (NOT_FOUND, REFUSED)}
_CODE_OF: Final = {number: code for code, number in _NUMBER_OF.items()}

_TERMINAL: Final = frozenset(
    {"TARGET", "DEADLOCK", "LIMIT", "EXPIRE", "DESTROYED", "CANCEL", "DRIVER", "DURABLE", "TAKEN"}
)
_FORM: Final = frozenset({"SCHEMA", "FIELD", "CONTROL", "SETTLED", "ABANDONED"})
_JOURNAL: Final = frozenset({"FULL", "READONLY", "IO", "CORRUPT"})
_WORKFLOW: Final = frozenset({"TRANSITION", "RESTORE", "MUTATION", "GAP"})
_ACTOR: Final = frozenset({"STOPPED", "MAILBOX_FULL", "UNKNOWN", "RESTARTS"})


class ErrorData(msgspec.Struct, frozen=True):
    """What a program goes by: the error as greenroom raises it."""

    code: str
    message: str
    context: dict[str, Any] = {}
    endpoint: str | msgspec.UnsetType = msgspec.UNSET
    """The remote method that was called; absent for the gateway's own methods."""
    field: str | msgspec.UnsetType = msgspec.UNSET
    """Beside it, the argument at fault, if one is."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """The `error` of a response."""

    code: int
    message: str
    data: ErrorData | msgspec.UnsetType = msgspec.UNSET


def failure_of(error: GreenroomError, endpoint: str | None = None) -> Failure:
    """How the error crosses the wire; `endpoint` is the remote method that it ended."""
    if isinstance(error, RemoteError):
        missing = NOT_FOUND if error.code.endswith("/not-found") else REFUSED
        number = _BOUNDARY.get(error.code, missing)
    elif isinstance(error, RpcError):
        number = _NUMBER_OF.get(error.code, REFUSED)
    else:
        unknown = error.code == "UNKNOWN" and isinstance(error, WorkflowError)
        number = NOT_FOUND if unknown or error.code == "TARGET" else REFUSED
    data = ErrorData(error.code, error.message, error.context)
    if endpoint is not None:
        field = error.context.get("field")
        told = field if isinstance(field, str) else msgspec.UNSET
        data = msgspec.structs.replace(data, endpoint=endpoint, field=told)
    return Failure(number, error.message, data)


def error_of(failure: Failure) -> GreenroomError:
    """The error that a peer meant: of the class that has its code, else an `RpcError`."""
    data = failure.data
    if isinstance(data, msgspec.UnsetType):
        return RpcError(_CODE_OF.get(failure.code, "FAILED"), failure.message, {"number": failure.code})
    kind: type[GreenroomError] = RpcError
    if "/" in data.code:
        endpoint = {} if isinstance(data.endpoint, msgspec.UnsetType) else {"endpoint": data.endpoint}
        return RemoteError(data.code, data.message, {**data.context, **endpoint})
    if failure.code in (NOT_FOUND, REFUSED):
        if data.code == "DEADLOCK":
            # Only these two reach a caller, and an ask names its terminal.
            kind = TerminalDeadlock if "to" in data.context else ActorDeadlock
        elif data.code in _TERMINAL:
            kind = TerminalError
        elif data.code in _WORKFLOW or (data.code == "UNKNOWN" and failure.code == NOT_FOUND):
            kind = WorkflowError
        elif data.code in _FORM:
            kind = FormError
        elif data.code in _JOURNAL:
            kind = JournalError
        elif data.code in _ACTOR:
            kind = ActorError
    return kind(data.code, data.message, data.context)
