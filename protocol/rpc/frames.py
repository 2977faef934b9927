"""JSON-RPC 2.0 messages as they travel: reading what a peer sent, writing what it gets.

What a peer sends may be anything. Reading a frame never raises: what is no request becomes a `Malformed`, which holds
the error that its sender gets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, TypeAlias, TypeVar, final

import msgspec

from greenroom.protocol import wire
from greenroom.protocol.errors import RpcError
from greenroom.protocol.rpc.failures import Failure
from greenroom.protocol.rpc.faults import Fault, explain

__all__ = [
    "BATCH",
    "Frame",
    "Malformed",
    "Message",
    "Request",
    "RequestId",
    "batch",
    "notification",
    "read_frame",
    "read_messages",
    "read_params",
    "refusal",
    "request",
    "response",
]

P = TypeVar("P", bound=msgspec.Struct)

BATCH: Final = 32
"""The most requests that one batch may hold."""

_SAFE: Final = 2**53 - 1

RequestId: TypeAlias = Annotated[str, msgspec.Meta(max_length=256)] | Annotated[int, msgspec.Meta(ge=-_SAFE, le=_SAFE)]
"""Kept as long as the call lasts, and sent back. Fractions and null, against which JSON-RPC advises, are refused."""


@final
class Request(msgspec.Struct, frozen=True):
    """A request, or without an id a notification."""

    jsonrpc: str
    method: str
    id: RequestId | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw = msgspec.Raw(b"{}")


@final
class Malformed(msgspec.Struct, frozen=True):
    """What came where a request should be, and the error that it gets. `id` is None if it cannot be told."""

    id: RequestId | None
    error: RpcError


@final
class Frame(msgspec.Struct, frozen=True):
    """One message from a peer: one entry, or the entries of a batch."""

    entries: tuple[Request | Malformed, ...]
    batch: bool = False


@final
class Message(msgspec.Struct, frozen=True):
    """What a server sends: a response (`id` with `result` or `error`) or a notification (`method` with `params`)."""

    id: RequestId | None = None
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: Failure | msgspec.UnsetType = msgspec.UNSET
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"{}")


class _Identified(msgspec.Struct):
    id: RequestId | None = None


_REQUEST = msgspec.json.Decoder(Request)
_IDENTIFIED = msgspec.json.Decoder(_Identified)
_ENTRIES = msgspec.json.Decoder(list[msgspec.Raw])
_ANYTHING = msgspec.json.Decoder(msgspec.Raw)
_MESSAGE = msgspec.json.Decoder(Message)
_MESSAGES = msgspec.json.Decoder(list[Message])

_UNREADABLE = (msgspec.DecodeError, RecursionError)
"""What decoding raises for what is no JSON, holds a lone surrogate, or is nested beyond what the decoder follows."""


# -------------------------------------------------------------------- what a client sent


def read_frame(text: str | bytes) -> Frame:
    """What a client's message holds; one in a binary frame is refused."""
    if isinstance(text, bytes):
        error = RpcError("PARSE", "This is a binary message; JSON-RPC comes in text messages.")
        return Frame((Malformed(None, error),))
    if not _is_batch(text):
        return Frame((_read_entry(text),))
    try:
        entries = _ENTRIES.decode(text)
    except _UNREADABLE as problem:
        return Frame((Malformed(None, _unreadable(problem)),))
    if not 0 < len(entries) <= BATCH:
        return Frame((Malformed(None, _no_request(f"A batch holds 1 to {BATCH} requests, not {len(entries)}.")),))
    return Frame(tuple(map(_read_entry, entries)), batch=True)


def _is_batch(text: str) -> bool:
    return text.lstrip(" \t\n\r")[:1] == "["


def _read_entry(text: str | msgspec.Raw) -> Request | Malformed:
    try:
        entry = _REQUEST.decode(text)
    except msgspec.ValidationError as problem:
        return _malformed(text, problem)
    except _UNREADABLE as problem:
        return Malformed(None, _unreadable(problem))
    if entry.jsonrpc != "2.0":
        id = None if entry.id is msgspec.UNSET else entry.id
        return Malformed(id, _no_request('Its member "jsonrpc" is not "2.0".', Fault("jsonrpc")))
    return entry


def _malformed(text: str | msgspec.Raw, problem: msgspec.ValidationError) -> Malformed:
    """JSON whose members do not fit; or what stops being JSON behind the member that was looked at last."""
    try:
        _ANYTHING.decode(text)
    except _UNREADABLE as worse:
        return Malformed(None, _unreadable(worse))
    try:
        id = _IDENTIFIED.decode(text).id
    except _UNREADABLE:
        id = None
    fault = explain(problem)
    where = f'Its member "{fault.field}"' if fault.field else "It"
    return Malformed(id, _no_request(f"{where} {fault.words}.", fault))


def _unreadable(problem: Exception) -> RpcError:
    if isinstance(problem, RecursionError):
        return RpcError("PARSE", "The message is nested too deeply to be read.")
    return RpcError(
        "PARSE", "The message is no JSON text: check its quotes and commas, and that it holds no lone surrogate."
    )


def _no_request(why: str, fault: Fault | None = None) -> RpcError:
    return RpcError(
        "REQUEST",
        f"The message is no JSON-RPC 2.0 request. {why} A request has jsonrpc, method, params and, unless it is a "
        "notification, an id.",
        {"field": fault.field} if fault is not None and fault.field else {},
    )


def read_params(method: str, params: msgspec.Raw, kind: type[P]) -> P:
    """The params of a request. Raises RpcError PARAMS, which names the member at fault and never its value."""
    try:
        return msgspec.json.decode(params, type=kind)
    except RecursionError:
        raise RpcError("PARAMS", f"The params of {method} are nested too deeply.", {"method": method}) from None
    except msgspec.DecodeError as problem:
        fault = explain(problem)
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    raise RpcError(
        "PARAMS",
        f'In the params of {method} "{fault.field}" {fault.words}.'
        if fault.field
        else f"The params of {method}: this {fault.words}.",
        {"method": method, "field": fault.field, "known": known} if fault.field else {"method": method, "known": known},
    )


# -------------------------------------------------------------------- what a client gets


def response(id: RequestId | None, result: Any) -> bytes:
    """The answer to the request of that id. Raises TypeError for a result that JSON cannot hold."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (wire.encode(id), wire.encode(result, surrogates="replace"))


def refusal(id: RequestId | None, failure: Failure) -> bytes:
    """The answer to a request that failed; without an id if that could not be read."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (wire.encode(id), wire.encode(failure, surrogates="replace"))


def notification(method: str, params: Any) -> bytes:
    """A message that is not answered."""
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (
        wire.encode(method),
        wire.encode(params, surrogates="replace"),
    )


def batch(answers: Iterable[bytes]) -> bytes:
    """The answers of a batch as one message."""
    return b"[%b]" % b",".join(answers)


# -------------------------------------------------------------------- the client's side


def request(id: RequestId | None, method: str, params: Any) -> bytes:
    """A request, or without an id a notification.

    Raises UnicodeEncodeError for a lone surrogate and TypeError for params that JSON cannot hold: what a client means
    is never sent as something else.
    """
    head = b"" if id is None else b'"id":%b,' % wire.encode(id)
    return b'{"jsonrpc":"2.0",%b"method":%b,"params":%b}' % (head, wire.encode(method), wire.encode(params))


def read_messages(text: str) -> list[Message]:
    """What a server's text frame holds. Raises RpcError PARSE if it is no JSON-RPC."""
    try:
        return _MESSAGES.decode(text) if _is_batch(text) else [_MESSAGE.decode(text)]
    except _UNREADABLE as problem:
        raise RpcError("PARSE", "The server sent what is no JSON-RPC message; is it greenroom's gateway?") from problem
