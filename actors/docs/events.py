"""What the code says of events: who declares each, who dispatches it, and who listens, read from the syntax alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

__all__ = ["EventUse", "Scan", "scan_events", "sources"]

_NAME: Final = re.compile(r"[a-z]+/[a-z]+(-[a-z]+)*")
"""What a text looks like that is given to `on` and names an event of the bus."""


class EventUse(Struct, frozen=True):
    """One event, and the modules that have to do with it, by name."""

    name: str
    declared_in: str
    dispatched_by: tuple[str, ...]
    heard_by: tuple[str, ...]


class Scan(Struct, frozen=True):
    """All events by name, and what is wrong with them, a sentence each."""

    events: dict[str, EventUse]
    faults: tuple[str, ...]


class _Declared(NamedTuple):
    module: str
    event: str | None
    """The attribute or variable that has the public half; None: it is thrown away."""
    dispatch: str
    """The one that has the private half."""


class _Heard(NamedTuple):
    module: str
    what: str
    literal: bool


def sources(folders: Mapping[str, Path]) -> dict[str, str]:
    """The text of every module beneath these packages, given by name with their folders."""
    return {
        ".".join((package, *file.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__"): file.read_text(
            "utf-8"
        )
        for package, folder in folders.items()
        for file in sorted(folder.rglob("*.py"))
    }


def scan_events(modules: Mapping[str, str]) -> Scan:
    """Read the modules, by name with their text.

    Faults are events that nothing dispatches, that are declared twice, or whose name does not stand where they are
    declared, and listening to what nobody declares.
    """
    trees = {module: ast.parse(text) for module, text in modules.items()}
    imports = {module: set(_imports(tree)) for module, tree in trees.items()}
    loads = {module: _loads(tree) for module, tree in trees.items()}
    faults: list[str] = []
    declared: dict[str, _Declared] = {}
    for module, tree in trees.items():
        for name, found in _declarations(module, tree):
            if name is None:
                faults.append(f"{module} declares an event whose name is not written there.")
            elif name in declared:
                faults.append(f"{name} is declared in {declared[name].module} and in {module}.")
            else:
                declared[name] = found
    heard = [each for module, tree in trees.items() for each in _listening(module, tree)]

    events: dict[str, EventUse] = {}
    for name, (home, _, dispatch) in sorted(declared.items()):
        private = dispatch.startswith("_")
        dispatchers = [
            module
            for module, (everywhere, of_others) in loads.items()
            if (
                dispatch in everywhere
                if module == home
                else not private and home in imports[module] and dispatch in of_others
            )
        ]
        if not dispatchers:
            faults.append(f"{name}, declared in {home}, is never dispatched.")
        listeners = {each.module for each in heard if _means(each, name, declared, imports)}
        events[name] = EventUse(name, home, tuple(dispatchers), tuple(sorted(listeners)))
    faults += [
        f"{each.module} listens to {each.what}, which nobody declares."
        for each in heard
        if each.literal and each.what not in declared
    ]
    return Scan(events, tuple(faults))


def _means(heard: _Heard, event: str, declared: Mapping[str, _Declared], imports: Mapping[str, set[str]]) -> bool:
    """Whether a listener is one to that event. An attribute that several declare means one that its module imports."""
    if heard.literal:
        return heard.what == event
    home = declared[event].module
    if declared[event].event != heard.what:
        return False
    homes = {each.module for each in declared.values() if each.event == heard.what}
    return len(homes) == 1 or heard.module == home or home in imports[heard.module]


def _declarations(module: str, tree: ast.Module) -> Iterator[tuple[str | None, _Declared]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        value: ast.expr = node.value
        half: object = None
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
            half = value.slice.value
            value = value.value
        if not (isinstance(value, ast.Call) and _called(value) == "declare"):
            continue
        name = value.args[0] if value.args else None
        spelled = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None
        (target,) = node.targets
        names = [_name(each) for each in target.elts] if isinstance(target, ast.Tuple) else [_name(target)] * 2
        yield spelled, _Declared(module, None if half == 1 else names[0], names[-1])


def _listening(module: str, tree: ast.Module) -> Iterator[_Heard]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) == "on" and len(node.args) >= 2:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str) and _NAME.fullmatch(first.value):
                yield _Heard(module, first.value, literal=True)
            elif isinstance(first, ast.Attribute):
                yield _Heard(module, first.attr, literal=False)


def _imports(tree: ast.Module) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _loads(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Which names and attributes are read at all, and which attributes of something else than `self`."""
    everywhere: set[str] = set()
    of_others: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            everywhere.add(_name(node))
            if isinstance(node, ast.Attribute) and _name(node.value) != "self":
                of_others.add(node.attr)
    return everywhere, of_others


def _called(call: ast.Call) -> str:
    return _name(call.func)


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
