"""Which services can be called from outside, under which names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar, final

from greenroom.actors.remote.contract import check_segment, method_contract, stream_contract
from greenroom.actors.remote.endpoint import Endpoint, StreamEndpoint
from greenroom.actors.remote.lookups import Lookups
from greenroom.actors.remote.marks import METHOD_MARK, STREAM_MARK, Marked
from greenroom.protocol.errors import ConfigError, RemoteError
from greenroom.protocol.rpc import OWN_NAMESPACES

__all__ = ["RemoteServices"]

E = TypeVar("E", bound=Endpoint | StreamEndpoint)


@final
class RemoteServices:
    """Services whose marked methods can be called from outside, over JSON-RPC and HTTP alike.

    ::

        class Releases:
            @remote("start")
            async def start(self, version: str, channel: str | UnsetType = UNSET) -> Release: ...

        runtime.remote.add("release", Releases())

    It is then the method `release/start` of JSON-RPC, and `POST /api/release/start`. What is not marked cannot be
    reached. Which callers reach what is said by the grant `remote` of their tokens.
    """

    def __init__(self) -> None:
        self.lookups: Final = Lookups()
        """What parameters may be besides JSON values."""
        self._methods: dict[str, Endpoint | None] = {}
        """By name; None stands for one that was withdrawn."""
        self._streams: dict[str, StreamEndpoint | None] = {}

    def add(self, namespace: str, service: object) -> Callable[[], None]:
        """Offer the marked methods and streams of `service` as `<namespace>/<name>`; all of them, or none.

        What is returned withdraws them, as often as it is called: later calls are refused with
        `gateway/definition-unavailable`, and those under way go on. Names that were withdrawn may be used again.

        Raises ConfigError REMOTE for a namespace of the gateway's own or a name that cannot be, a name that is taken,
        a service without marked methods, and a method that is no contract: which is not public or not async, has
        parameters without a name or an annotation, or a default other than UNSET, or takes or gives back what neither
        JSON nor a lookup can say.
        """
        check_segment("A namespace", namespace)
        if namespace in OWN_NAMESPACES:
            raise ConfigError(
                "REMOTE",
                f"The namespace {namespace} has methods of the gateway's own; choose another one than "
                f"{', '.join(sorted(OWN_NAMESPACES))}.",
                {"namespace": namespace},
            )
        methods: dict[str, Endpoint] = {}
        streams: dict[str, StreamEndpoint] = {}
        owner = type(service)
        for function, member in _members(owner):
            if (marked := _mark(function, METHOD_MARK)) is not None:
                name = _name(namespace, owner, marked, methods, self._methods)
                contract = method_contract(owner, function, name, self.lookups, repeatable=marked.repeatable)
                methods[name] = Endpoint(name, getattr(service, member), contract, self.lookups)
            if (marked := _mark(function, STREAM_MARK)) is not None:
                name = _name(namespace, owner, marked, streams, self._streams)
                contract = stream_contract(owner, function, name, self.lookups)
                streams[name] = StreamEndpoint(name, getattr(service, member), contract, self.lookups)
        if not methods and not streams:
            raise ConfigError(
                "REMOTE",
                f"{owner.__name__} has nothing to offer: mark its methods with @remote or @remote_stream.",
                {"class": owner.__name__},
            )
        self._methods.update(methods)
        self._streams.update(streams)

        def withdraw() -> None:
            _withdraw(self._methods, methods)
            _withdraw(self._streams, streams)

        return withdraw

    def method(self, name: str) -> Endpoint | None:
        """The method of that name; None if there never was one.

        Raises RemoteError `gateway/definition-unavailable` for one that was withdrawn.
        """
        return _find(self._methods, name)

    def stream(self, name: str) -> StreamEndpoint | None:
        """The stream of that name; None if there never was one. Raises as `method` does."""
        return _find(self._streams, name)

    def methods(self) -> list[Endpoint]:
        """All that are offered now, in the order in which they were added."""
        return [endpoint for endpoint in self._methods.values() if endpoint is not None]

    def streams(self) -> list[StreamEndpoint]:
        """All that are offered now, in the order in which they were added."""
        return [endpoint for endpoint in self._streams.values() if endpoint is not None]


def _members(owner: type) -> Iterator[tuple[Any, str]]:
    """Every function that instances of a class find under some name, unwrapped, in the order of their definition."""
    names = {name: None for base in reversed(owner.__mro__) for name in vars(base)}
    for name in names:
        found = inspect.getattr_static(owner, name)
        function = getattr(found, "__func__", found)
        if inspect.isfunction(function):
            yield function, name


def _mark(function: Any, which: str) -> Marked | None:
    found: Marked | None = getattr(function, which, None)
    return found


def _name(namespace: str, owner: type, marked: Marked, own: dict[str, Any], others: dict[str, Any]) -> str:
    check_segment(f"A method of {owner.__name__}", marked.name)
    name = f"{namespace}/{marked.name}"
    if name in own or others.get(name) is not None:
        raise ConfigError(
            "REMOTE",
            f"{name} is offered already; {owner.__name__} needs another namespace or another name for it.",
            {"class": owner.__name__, "endpoint": name},
        )
    return name


def _find(endpoints: dict[str, E | None], name: str) -> E | None:
    found = endpoints.get(name)
    if found is None and name in endpoints:
        raise RemoteError("gateway/definition-unavailable", f"{name} was withdrawn, and is not offered now.")
    return found


def _withdraw(endpoints: dict[str, E | None], own: dict[str, E]) -> None:
    for name, endpoint in own.items():
        if endpoints.get(name) is endpoint:
            endpoints[name] = None
