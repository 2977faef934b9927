"""Remote methods over HTTP: `POST /api/<namespace>/<method>`, a call for those who hold no WebSocket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, final

import msgspec
import trio

from greenroom.actors.gateway.access import Access, Caller, presented_token
from greenroom.actors.gateway.connection import REFUSAL, GatewayLimits
from greenroom.actors.gateway.handlers import LARGEST, too_large
from greenroom.actors.gateway.http import HttpRequest, HttpResponse, text_response
from greenroom.actors.gateway.remote import find_method, told
from greenroom.actors.gateway.routes import Routes
from greenroom.actors.remote import Endpoint, RemoteServices
from greenroom.protocol import wire
from greenroom.protocol.bridge import TOKEN_HEADER
from greenroom.protocol.errors import GreenroomError, RemoteError, RpcError
from greenroom.protocol.rpc import API_PATH, ApiCall, ApiResult, api_failure
from greenroom.protocol.rpc.faults import explain

__all__ = ["add_api"]

_BODY: Final = msgspec.json.Decoder(ApiCall)
_NO_VALUE: Final = msgspec.Raw(b"null")


def add_api(routes: Routes, remote: RemoteServices, access: Access, limits: GatewayLimits) -> None:
    """Serve the remote methods to who may call them.

    Before a method is looked at, a request can fail with 401 (token), 404 (no such method, or none that the token
    grants), 415 (another type than JSON), 413 (larger than a message may be) or 429 (the token's limits). What is
    carried out, and what is refused by the method or at its boundary, is 200 with `ok`.
    """
    routes.add("POST", f"{API_PATH}/:namespace/:method", _Api(remote, access, limits).respond)


@final
class _Api:
    def __init__(self, remote: RemoteServices, access: Access, limits: GatewayLimits) -> None:
        self._remote = remote
        self._access = access
        self._limits = limits

    async def respond(self, request: HttpRequest, names: dict[str, str]) -> HttpResponse:
        """The response to one request. Its call is cancelled when its sender has gone."""
        token = presented_token(request.values("authorization"), (), request.values(TOKEN_HEADER))
        caller = self._access.identify(None if self._access.open else token)
        if caller is None:
            return text_response(401, REFUSAL, ("WWW-Authenticate", "Bearer"))
        if not self._has_room(caller):
            return text_response(429, "This token has sent as many requests, or has as many open, as it may.")
        name = f"{names['namespace']}/{names['method']}"
        try:
            endpoint = find_method(self._remote, name, caller.grants)
        except RemoteError as error:
            withdrawn = error.code == "gateway/definition-unavailable"
            return _json(api_failure(error, told(name)), 200 if withdrawn else 404)
        if [value.partition(";")[0].strip().lower() for value in request.values("content-type")] != [
            "application/json"
        ]:
            return text_response(415, "A call is JSON: send it as application/json.")
        caller.usage.connections += 1
        try:
            body = await self._read(request)
            if body is None:
                return text_response(413, f"A call has at most {self._limits.socket.message_size} bytes.")
            return await self._call(request, caller, endpoint, body)
        finally:
            caller.usage.connections -= 1

    def _has_room(self, caller: Caller) -> bool:
        if caller.token is None:
            return True
        usage, rate = caller.usage, self._limits.requests
        if not usage.requests.spend(trio.current_time(), rate, 5 * rate):
            return False
        return usage.connections < self._limits.connections

    async def _read(self, request: HttpRequest) -> bytes | None:
        """The body, unless it is too large."""
        most = self._limits.socket.message_size
        if any(length.isdecimal() and int(length) > most for length in request.values("content-length")):
            return None
        body = bytearray()
        async for piece in request.body:
            body += piece
            if len(body) > most:
                return None
        return bytes(body)

    async def _call(self, request: HttpRequest, caller: Caller, endpoint: Endpoint, body: bytes) -> HttpResponse:
        try:
            if not self._access.admits(caller):
                return text_response(401, REFUSAL, ("WWW-Authenticate", "Bearer"))
            params = endpoint.read(_arguments(body), endpoint.contract.arguments)
            value = await self._while_wanted(request, caller, lambda: endpoint(params), endpoint.name)
            if len(value) > LARGEST:
                raise too_large(len(value))
        except GreenroomError as error:
            return _json(api_failure(error, endpoint.name))
        return _json(ApiResult() if value == _NO_VALUE else ApiResult(value=value))

    async def _while_wanted(
        self, request: HttpRequest, caller: Caller, call: Callable[[], Awaitable[msgspec.Raw]], name: str
    ) -> msgspec.Raw:
        """What the call comes to. It is cancelled when its sender has gone, or its token has ended: RpcError
        CANCELLED."""
        value: msgspec.Raw | None = None
        async with trio.open_nursery() as nursery:
            wanted = trio.CancelScope()
            nursery.start_soon(_cancel_after, request.gone, wanted)
            if caller.token is not None:
                nursery.start_soon(_cancel_after, lambda: self._expiry(caller), wanted)
            try:
                with wanted:
                    value = await call()
            except GreenroomError as error:
                refusal: GreenroomError | None = error
            else:
                refusal = None
            nursery.cancel_scope.cancel()
        if refusal is not None:
            raise refusal
        if value is None:
            raise RpcError("CANCELLED", f"The call of {name} was cancelled.", {"method": name})
        return value

    async def _expiry(self, caller: Caller) -> None:
        """Return when the caller's token is not valid any more, at the latest one heartbeat after."""
        while self._access.admits(caller):  # noqa: ASYNC110  # the end of a token is no event
            await trio.sleep(self._limits.socket.ping_interval)


async def _cancel_after(wait: Callable[[], Awaitable[None]], scope: trio.CancelScope) -> None:
    await wait()
    scope.cancel()


def _arguments(body: bytes) -> msgspec.Raw:
    """The `args` of a body. Raises RemoteError `gateway/input-invalid` if it holds anything else, or is no JSON."""
    try:
        return _BODY.decode(body).args
    except RecursionError:
        words, field = "is nested too deeply", ""
    except msgspec.ValidationError as problem:
        fault = explain(problem)
        words, field = fault.words, fault.field
    except (msgspec.DecodeError, UnicodeDecodeError):
        words, field = "is no JSON text", ""
    where = f'In the body of this call "{field}" {words}.' if field else f"The body of this call {words}."
    raise RemoteError("gateway/input-invalid", f'{where} Send {{"args": {{...}}}}.', {"field": field} if field else {})


def _json(answer: msgspec.Struct, status: int = 200) -> HttpResponse:
    return HttpResponse(status, wire.encode(answer, surrogates="replace"), content_type="application/json")
