"""The generated catalogs leave out nothing that there is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import greenroom
from greenroom.actors import toolbox
from greenroom.actors.catalogs import TOOLS, events_reference, tools_reference

ROOT = Path(__file__).resolve().parent.parent
OF_THE_READERS_OWN = {"endpoint_tool"}
"""Tools that have no name and no schema until somebody gives them one."""


def test_every_tool_of_the_toolbox_is_in_its_catalog() -> None:
    factories = {name for name in toolbox.__all__ if name.endswith("_tool")} - OF_THE_READERS_OWN
    assert {f"{name}_tool" for name in TOOLS} == factories
    text = tools_reference()
    for name in factories:
        assert hasattr(greenroom, name)
        assert f"## `{name.removesuffix('_tool')}`" in text
    assert text == tools_reference()


def test_every_event_that_is_declared_is_in_its_catalog() -> None:
    text = events_reference()
    declared = {name for file in ROOT.glob("[ar]*/**/*.py") for name in _declared(file)}
    assert "actor/failed" in declared
    for name in declared:
        assert f"| `{name}` |" in text, f"{name} is declared, but not by a runtime that has just been opened"


def _declared(file: Path) -> Iterator[str]:
    """The names of events that the code of this file declares."""
    if file.name == "bus.py":
        return
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "declare":
            name = node.args[0]
            assert isinstance(name, ast.Constant), f"{file} declares an event whose name is not written there"
            yield str(name.value)
