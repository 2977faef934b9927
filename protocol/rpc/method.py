"""What a method or a notification of the gateway is made of: a name, and the structs of params and result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Generic, TypeVar, final

import msgspec

__all__ = ["Keyed", "Method", "Notification", "Params", "Result"]

P = TypeVar("P", bound="Params")
R = TypeVar("R")


class Params(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Base of what a method or a notification takes. A member that it does not know is refused."""


class Result(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what a method gives back. A client ignores members that it does not know."""


class Keyed(Params, frozen=True, kw_only=True):
    """Base of what may change something, and must not be done twice.

    With a `key`, the call belongs to the client that said `rpc/hello`, not to its connection: it goes on while the
    client is away, for as long as `rpc/hello` says, and the same key gives the same outcome, waiting for it if need be.
    """

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | None = None
    """Made by the client, another one for each call."""
    again: bool = False
    """It was sent before, and its outcome got lost. Refused with OUTCOME if nothing is known of it."""
    visit: str | None = None
    """The `visit` in which it was sent first. With it, a call that is sent again and can only have got lost on its way
    is carried out, not refused."""

    @property
    def repeatable(self) -> bool:
        """Carried out once more it does the same, also by a server that knows nothing of the first time."""
        return False


@final
class Method(Generic[P, R]):
    """A method: its name, the struct of its params, and what it gives back.

    `read` makes a Python value of an encoded result; without it `result` is a type that msgspec can decode.
    """

    __slots__ = ("name", "params", "read", "result")

    def __init__(self, name: str, params: type[P], result: Any, read: Callable[[msgspec.Raw], R] | None = None) -> None:
        self.name = name
        self.params = params
        self.result = result
        self.read: Callable[[msgspec.Raw], R] = read or msgspec.json.Decoder(result).decode

    def __repr__(self) -> str:
        return f"<Method {self.name}>"


@final
class Notification(Generic[P]):
    """A notification of the server: its name and the struct of its params."""

    __slots__ = ("name", "params")

    def __init__(self, name: str, params: type[P]) -> None:
        self.name = name
        self.params = params

    def __repr__(self) -> str:
        return f"<Notification {self.name}>"
