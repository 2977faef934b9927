"""Lossless snapshots: frozen copies of JSON values, which come out of any codec as they went in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn, cast, final

from greenroom.protocol.schemas import NotJson
from greenroom.protocol.schemas.gates import MAX_LEVELS, MAX_NODES, encodable

__all__ = ["FrozenDict", "FrozenList", "snapshot", "thaw"]

SAFE: Final = 2**53 - 1
"""The largest integer that every reader of JSON holds exactly (RFC 8259, section 6)."""


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("what a call was given and what it came to is read-only: copy it with thaw() to change the copy")


@final
class FrozenDict(dict[str, Any]):
    """A dict that refuses to be changed. Copying it gives a plain one."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (list(self.items()),)


@final
class FrozenList(list[Any]):
    """A list that refuses to be changed. Copying it gives a plain one."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


_append = cast("Callable[[Any, Any], None]", list[Any].append)
_set = cast("Callable[[Any, Any, Any], None]", dict[Any, Any].__setitem__)
"""What fills a copy while it is made, past its refusals."""

DICTS: Final = (dict, FrozenDict)
LISTS: Final = (list, FrozenList)
CONTAINERS: Final = (*DICTS, *LISTS)


def snapshot(value: object) -> Any | NotJson:
    """A frozen deep copy of a JSON value, or a `NotJson` that says where it is none. Never raises.

    JSON is what `clone_json` takes, and less: no integer beyond 2^53 - 1 either way, and no -0.0, since there are
    readers that lose them. A snapshot of a snapshot is as good as one of its original.
    """
    if type(value) not in CONTAINERS:
        flaw = _flaw(value)
        return value if flaw is None else NotJson((), flaw)
    return _copied(value, FrozenDict, FrozenList)


def thaw(value: Any) -> Any:
    """A deep copy of a snapshot, which may be changed."""
    return value if type(value) not in CONTAINERS else _copied(value, dict, list)


def _copied(value: object, as_dict: type[dict[str, Any]], as_list: type[list[Any]]) -> Any | NotJson:
    """The walk keeps its own stack, so that no depth exhausts the interpreter's."""
    root: Any = as_dict() if type(value) in DICTS else as_list()
    line: list[tuple[Any, Any, Iterator[tuple[Any, Any]], object]] = [(value, root, _entries(value), None)]
    circle = {id(value)}
    nodes = 1
    while line:
        original, copy, rest, _ = line[-1]
        listed = type(original) in LISTS
        for key, child in rest:
            nodes += 1
            nested = type(child) in CONTAINERS
            sound = listed or (type(key) is str and encodable(key))
            reason = None if nested else _flaw(child)
            if not sound:
                reason = "an object with a key that is no plain text"
            elif nodes > MAX_NODES:
                reason = f"beyond the {MAX_NODES:,} values that are taken"
            elif nested and id(child) in circle:
                reason = "a container that holds itself"
            elif nested and len(line) == MAX_LEVELS:
                reason = f"beyond the {MAX_LEVELS} levels that are taken"
            if reason is not None:
                path = [str(each[3]) for each in line[1:]] + ([str(key)] if sound else [])
                return NotJson(tuple(path), reason)
            made: Any = child
            if nested:
                made = as_dict() if type(child) in DICTS else as_list()
            if listed:
                _append(copy, made)
            else:
                _set(copy, key, made)
            if nested:
                circle.add(id(child))
                line.append((child, made, _entries(child), key))
                break
        else:
            circle.discard(id(original))
            line.pop()
    return root


def _entries(container: Any) -> Iterator[tuple[Any, Any]]:
    if type(container) in DICTS:
        yield from container.items()
    else:
        yield from enumerate(container)


def _flaw(value: object) -> str | None:
    """What keeps a value that is no container from being JSON that everybody reads alike."""
    if value is None or type(value) is bool:
        return None
    if type(value) is str:
        return None if encodable(value) else "text with a lone surrogate"
    if type(value) is int:
        return None if -SAFE <= value <= SAFE else "an integer that not every reader holds exactly"
    if type(value) is float:
        if not math.isfinite(value):
            return "a number that is not finite"
        return "a zero with a sign" if value == 0 and math.copysign(1, value) < 0 else None
    return "of a type that JSON lacks"
