"""One remote method, or stream: arguments in, a result that was checked, and errors that tell no more than they may."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final, NoReturn, TypeVar, final

import msgspec
import trio

from greenroom.actors.remote.contract import Contract
from greenroom.actors.remote.lookups import Lookups
from greenroom.protocol import wire
from greenroom.protocol.errors import RemoteError, RpcError
from greenroom.protocol.rpc import frames

__all__ = ["Endpoint", "StreamEndpoint"]

P = TypeVar("P", bound=msgspec.Struct)

logger = logging.getLogger("greenroom.remote")


class _Bound:
    """What methods and streams have in common: a contract, and a function that keeps it."""

    def __init__(self, name: str, function: Callable[..., Any], contract: Contract, lookups: Lookups) -> None:
        self.name: Final = name
        """`<namespace>/<name>`."""
        self.contract: Final = contract
        self._function = function
        self._lookups = lookups
        self._result: msgspec.json.Decoder[Any] = msgspec.json.Decoder(contract.result)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def read(self, params: msgspec.Raw, kind: type[P]) -> P:
        """Arguments as they came; `kind` is one of the contract's structs.

        Raises RemoteError: `gateway/arguments-invalid` with the `field` at fault, never its value, and
        `gateway/input-invalid` for what is no object, or nested too deeply.
        """
        try:
            return frames.read_params(self.name, params, kind)
        except RpcError as fault:
            code = "arguments-invalid" if fault.context.get("field") else "input-invalid"
            context = {name: value for name, value in fault.context.items() if name != "method"}
            raise RemoteError(f"gateway/{code}", fault.message, context) from None

    async def _arguments(self, params: msgspec.Struct) -> dict[str, Any]:
        """The function's own arguments, with each object looked up."""
        found: dict[str, Any] = {}
        for parameter, member in self.contract.parameters.items():
            value = getattr(params, member)
            kind = self.contract.looked_up.get(member)
            if isinstance(value, str) and kind is not None:
                value = await self._look_up(kind, member, value)
            if value is not msgspec.UNSET:
                found[parameter] = value
        return found

    async def _look_up(self, kind: type[Any], member: str, id: str) -> Any:
        field = next(each for each in msgspec.structs.fields(self.contract.arguments) if each.name == member)
        context = {"field": field.encode_name}
        if not self._lookups.knows(kind):
            raise RemoteError(
                "gateway/lookup-unavailable",
                f'{self.name} cannot find what "{field.encode_name}" stands for any more; ask whoever runs the server.',
                context,
            )
        try:
            found: object = await self._lookups.find(kind, id)
        except RemoteError:
            raise
        except Exception as error:
            await self._hide(error, "gateway/lookup-failed", context)
        if found is None:
            raise RemoteError(
                "gateway/lookup-not-found",
                f'{self.name}: "{field.encode_name}" stands for nothing that is there. List what there is, and choose '
                "one of it.",
                context,
            )
        return found

    def _checked(self, value: object) -> msgspec.Raw:
        """What goes back: the value as the contract has it, and nothing besides.

        It is read again by its own type, so that a subclass with more members tells no more than it should.
        """
        written = self._result.decode(wire.encode(value))
        return msgspec.Raw(wire.encode(written))

    async def _hide(self, error: Exception, code: str = "gateway/internal", context: Any = None) -> NoReturn:
        """Raise what the caller is told of a fault that is none of its own; the log is told all.

        Where the call was cancelled, that is what has ended it, whatever the method raised on its way out.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        correlation = secrets.token_hex(8)
        logger.error("%s failed; correlation %s", self.name, correlation, exc_info=error)
        raise RemoteError(
            code,
            f"The server failed at this call. Its log has the details under {correlation}.",
            {"correlation": correlation, **(context or {})},
        ) from None

    async def _refuse(self, error: RemoteError) -> NoReturn:
        """Raise what the method refuses, if that can be told as it is."""
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            wire.encode(error.encode())
        except (TypeError, ValueError, RecursionError) as fault:
            await self._hide(fault)
        raise error


@final
class Endpoint(_Bound):
    """A remote method. Made by `RemoteServices.add`."""

    async def __call__(self, params: msgspec.Struct) -> msgspec.Raw:
        """Look up what is to be looked up, call the method, and give its result as JSON. It has no deadline of its own.

        Raises RemoteError: the method's own, or of the boundary (see there). Cancelled: so is the method; what it
        raises then counts as its cancellation, and what it returns is its result.
        """
        try:
            arguments = await self._arguments(params)
            value = await self._function(**arguments)
        except RemoteError as error:
            await self._refuse(error)
        except Exception as error:
            await self._hide(error)
        try:
            return self._checked(value)
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            await self._hide(error, "gateway/result-invalid")


@final
class StreamEndpoint(_Bound):
    """A stream. Made by `RemoteServices.add`."""

    async def open(self, params: msgspec.Struct) -> AsyncGenerator[msgspec.Raw, None]:
        """Look up what is to be looked up; the items, as JSON, of which each is made when it is asked for.

        Raises RemoteError as a call does, and so does iterating. Whoever iterates closes it.
        """
        try:
            arguments = await self._arguments(params)
            return self._items(self._function(**arguments))
        except RemoteError as error:
            await self._refuse(error)
        except Exception as error:
            await self._hide(error)

    async def _items(self, source: AsyncGenerator[Any, None]) -> AsyncGenerator[msgspec.Raw, None]:
        try:
            async for value in source:
                try:
                    item = self._checked(value)
                except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
                    await self._hide(error, "gateway/result-invalid")
                yield item
        except RemoteError as error:
            await self._refuse(error)
        except Exception as error:
            await self._hide(error)
        finally:
            await source.aclose()
