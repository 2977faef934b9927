"""The contract of a remote method, from its annotations: the structs that its arguments are read by, and its result.

Everything that is wrong with a method is told when its service is added, in a sentence that names class, method and
parameter: a contract that holds only sometimes is none.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Mapping
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Final, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from greenroom.actors.remote.lookups import Lookups, Wires
from greenroom.protocol.errors import ConfigError
from greenroom.protocol.rpc import Keyed, Params

__all__ = ["Contract", "check_segment", "method_contract", "stream_contract"]

_SEGMENT = re.compile("[A-Za-z][A-Za-z0-9_-]{0,63}")
_ITERATORS: Final = (AsyncIterator, AsyncGenerator, AsyncIterable)


class Contract(NamedTuple):
    """What a method takes and gives, as msgspec reads and writes it."""

    arguments: type[Params]
    """A member for each parameter."""
    keyed: type[Keyed]
    """The same with the members of calls that must not be done twice."""
    looked_up: Mapping[str, type[Any]]
    """The members that are ids, each with the class of what it stands for."""
    parameters: Mapping[str, str]
    """The member of each parameter."""
    result: Any
    """What comes back; for a stream, what each item is."""
    about: str
    """The docstring."""


class _Repeatable(Keyed, frozen=True, kw_only=True):
    """Base of the arguments of a method that may be carried out once more."""

    @property
    def repeatable(self) -> bool:
        return True


def check_segment(what: str, text: object) -> None:
    """Raise ConfigError REMOTE for a namespace or a method's name that no URL and no identifier could hold."""
    if not isinstance(text, str) or _SEGMENT.fullmatch(text) is None:
        raise ConfigError(
            "REMOTE",
            f"{what} is called {text!r}; call it by up to 64 letters, digits, - and _, a letter first.",
            {"name": str(text)},
        )


def method_contract(
    owner: type, function: Callable[..., Any], endpoint: str, lookups: Lookups, *, repeatable: bool = False
) -> Contract:
    """The contract of a method. Raises ConfigError REMOTE for one that cannot be called from outside."""
    return _method_contract(owner, function, endpoint, lookups.wires, _Repeatable if repeatable else Keyed)


def stream_contract(owner: type, function: Callable[..., Any], endpoint: str, lookups: Lookups) -> Contract:
    """The contract of a stream. Raises ConfigError REMOTE for one that cannot be opened from outside."""
    return _stream_contract(owner, function, endpoint, lookups.wires)


# Every runtime offers services of the same classes, and making their structs takes as long as all the rest of it.
@lru_cache(maxsize=512)
def _method_contract(
    owner: type, function: Callable[..., Any], endpoint: str, wires: Wires, keyed: type[Keyed]
) -> Contract:
    reader = _Reader(owner, function, endpoint, wires)
    if not inspect.iscoroutinefunction(function):
        raise reader.refusal("is not an async method (`async def` with `self`)")
    return reader.contract(reader.result(), keyed)


@lru_cache(maxsize=512)
def _stream_contract(owner: type, function: Callable[..., Any], endpoint: str, wires: Wires) -> Contract:
    reader = _Reader(owner, function, endpoint, wires)
    if not inspect.isasyncgenfunction(function):
        raise reader.refusal("is not an async generator (`async def` with `self`, and `yield`)")
    returned = reader.result()
    if get_origin(returned) not in _ITERATORS:
        raise reader.refusal("does not say what it yields: annotate it with `AsyncIterator[...]`")
    return reader.contract(get_args(returned)[0])


class _Reader:
    """Reads one method."""

    def __init__(self, owner: type, function: Callable[..., Any], endpoint: str, wires: Wires) -> None:
        self._owner = owner
        self._function = function
        self._endpoint = endpoint
        self._wires = dict(wires)
        name = getattr(function, "__name__", str(function))
        self._name = f"{owner.__name__}.{name}"
        if name.startswith("_"):
            raise self.refusal("is not public: its name begins with an underscore")
        try:
            self._hints = get_type_hints(function, include_extras=True)
        except (NameError, TypeError, AttributeError, SyntaxError) as error:
            raise self.refusal(f"has annotations that cannot be read: {error}") from None

    def refusal(self, fault: str, parameter: str = "") -> ConfigError:
        """Why there is no contract."""
        whose = f"The parameter {parameter} of {self._name}" if parameter else self._name
        context = {"class": self._owner.__name__, "method": self._name, "endpoint": self._endpoint}
        return ConfigError(
            "REMOTE",
            f"{whose} {fault}, so that {self._endpoint} cannot be offered.",
            {**context, "parameter": parameter} if parameter else context,
        )

    def result(self) -> Any:
        """The annotation of what it gives back."""
        if "return" not in self._hints:
            raise self.refusal("does not say what it returns: annotate it, with `-> None` if it returns nothing")
        return self._hints["return"]

    def contract(self, result: Any, keyed: type[Keyed] = Keyed) -> Contract:
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        looked_up: dict[str, type[Any]] = {}
        members: dict[str, str] = {}
        wires = {field.encode_name for field in msgspec.structs.fields(Keyed)}
        parameters = list(inspect.signature(self._function).parameters.values())
        if not parameters or parameters[0].name != "self":
            raise self.refusal("is not a method with `self`")
        for parameter in parameters[1:]:
            member, hint, kind = self._read(parameter)
            wire = _camel(member)
            if wire in wires or hasattr(Keyed, member):
                raise self.refusal(f"would be `{wire}` on the wire, which is taken", parameter.name)
            wires.add(wire)
            fields.append((member, hint) if parameter.default is parameter.empty else (member, hint, UNSET))
            members[parameter.name] = member
            if kind is not None:
                looked_up[member] = kind
        self._require_json(result, "gives back what JSON cannot say")
        arguments = self._struct(fields, Params)
        about = inspect.getdoc(self._function) or ""
        return Contract(arguments, self._struct(fields, keyed), looked_up, members, result, about)

    def _read(self, parameter: inspect.Parameter) -> tuple[str, Any, type[Any] | None]:
        """The member that stands for a parameter, its type, and the class that it is an id of, if it is one."""
        name = parameter.name
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise self.refusal("has no name of its own on the wire: take named parameters only", name)
        if name not in self._hints:
            raise self.refusal("is not annotated", name)
        hint = self._hints[name]
        optional = UnsetType in _parts(hint)
        if parameter.default is not parameter.empty and parameter.default is not UNSET:
            raise self.refusal("has a default; the only one is `UNSET`, with `| UnsetType` in its type", name)
        if optional != (parameter.default is UNSET):
            raise self.refusal("may be left out or not: give it both `| UnsetType` and `= UNSET`, or neither", name)
        kinds = [part for part in _parts(hint) if _is_class(part) and part in self._wires]
        if not kinds:
            self._require_json(hint, "is what JSON cannot say, and no id of it is looked up", name)
            return name, hint, None
        if len(kinds) > 1 or not set(_parts(hint)) <= {kinds[0], NoneType, UnsetType}:
            raise self.refusal("mixes objects that are told by their ids with others", name)
        wanted: Any = str
        for part in _parts(hint):
            if part is not kinds[0]:
                wanted = wanted | part
        return f"{name}_{self._wires[kinds[0]]}", wanted, kinds[0]

    def _require_json(self, hint: Any, fault: str, parameter: str = "") -> None:
        try:
            msgspec.json.schema_components([hint])
            msgspec.json.Decoder(hint)
        except (TypeError, NameError, ValueError) as error:
            raise self.refusal(f"{fault} ({str(error).splitlines()[-1]})", parameter) from None

    def _struct(self, fields: list[Any], base: type[Any]) -> type[Any]:
        name = self._endpoint.replace("/", ".")
        made = msgspec.defstruct(
            name, fields, bases=(base,), kw_only=True, frozen=True, namespace={"__doc__": f"Arguments of {name}."}
        )
        return cast("type[Any]", made)


def _parts(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a union, or the one type that there is."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is_class(part: Any) -> bool:
    """Other annotations need not have a hash."""
    return isinstance(part, type)


def _camel(name: str) -> str:
    """As msgspec renames it."""
    (field,) = msgspec.structs.fields(msgspec.defstruct("_", [(name, Any)], rename="camel"))
    return field.encode_name
