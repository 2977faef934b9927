"""The generated catalogs leave out nothing that there is, and say nothing that is not so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import greenroom
from greenroom.actors import catalogs, toolbox
from greenroom.actors.catalogs import LEAVES, OF_THE_READERS_OWN, OFFERED_BY, TOOLS, check_tools, scan_code
from greenroom.actors.docs.events import scan_events
from greenroom.protocol.errors import InvariantError
from greenroom.runtime.tools import Tool

FIRING = """
class Things:
    def __init__(self, bus):
        self.made, self._announce = bus.declare("things/made", Thing)
        self.lost = bus.declare("things/lost", Thing)[1]
    def make(self):
        self._announce(Thing())
"""


def tool(name: str, description: str | None = "Does it.") -> Tool:
    return Tool(name, lambda _: None, parameters={"type": "object"}, description=description)


def test_every_tool_of_the_toolbox_is_in_its_catalog() -> None:
    factories = {name for name in toolbox.__all__ if name.endswith("_tool")} - {f"{n}_tool" for n in OF_THE_READERS_OWN}
    assert {f"{name}_tool" for name in TOOLS} == factories
    text = catalogs.tools_reference()
    for name in factories:
        assert hasattr(greenroom, name)
        assert f"## `{name.removesuffix('_tool')}`" in text
    assert text == catalogs.tools_reference()
    assert set(TOOLS) >= {*OFFERED_BY, *LEAVES}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"a": tool("a"), "b": tool("a")}, ["b is called a.", "a is the name of several tools."]),
        ({"a": tool("a", None)}, ["a has no description."]),
        ({"a": tool("a", " ")}, ["a has no description."]),
        ({"a": Tool("a", lambda: None, description="Does it.")}, ["a has no schema of its arguments."]),
        ({"a": tool("a")}, []),
    ],
)
def test_a_tool_that_clashes_or_says_nothing_of_itself_is_no_catalog(made: dict[str, Tool], said: list[str]) -> None:
    assert check_tools(made, modules=()) == said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", ["lonely makes no tool, and has nothing to do with a module that makes one."]),
        ("def lonely_tool(): ...", ["lonely makes lonely_tool, which is not in the catalog, and has nothing to do"]),
        ("def _lonely_tool(): ...", ["lonely makes no tool"]),
        ("from greenroom import infer_tool", ["lonely makes no tool"]),
        ("from greenroom.actors.toolbox.infer import infer_tool", []),
        ("def infer_tool(): ...", []),
        ("def endpoint_tool(): ...", []),
    ],
)
def test_a_module_that_makes_no_tool_of_the_catalog_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: list[str]
) -> None:
    (tmp_path / "lonely.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "lonely", raising=False)
    faults = check_tools({"infer": tool("infer")}, modules=["lonely"])
    assert len(faults) == len(said)
    assert all(fault.startswith(start) for fault, start in zip(faults, said, strict=True))
    monkeypatch.delitem(sys.modules, "lonely", raising=False)


def test_a_catalog_of_tools_that_leaves_one_out_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    # Taken out and put back it would stand at another place.
    monkeypatch.setattr(catalogs, "TOOLS", {name: make for name, make in TOOLS.items() if name != "infer"})
    with pytest.raises(InvariantError, match="infer_tool, which is not in the catalog"):
        catalogs.tools_reference()


def test_every_event_that_is_declared_is_in_its_catalog_with_who_dispatches_it() -> None:
    text = catalogs.events_reference()
    scan = scan_code()
    assert scan.faults == ()
    assert scan.events["actor/failed"].dispatched_by == ("greenroom.runtime.tree",)
    assert scan.events["tools/execute"].dispatched_by == ("greenroom.runtime.pipeline.execution",)
    assert "greenroom.runtime.policies.metrics" in scan.events["tools/result"].heard_by
    for name in scan.events:
        assert f"| `{name}` |" in text, f"{name} is declared, but not by a runtime that has just been opened"


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ({"a": FIRING}, ["things/lost, declared in a, is never dispatched."]),
        ({"a": FIRING, "b": "def f(things): things.lost(1)"}, ["things/lost, declared in a, is never dispatched."]),
        ({"a": FIRING, "b": "from a import Things\ndef f(things): things.lost(1)"}, []),
        (
            {"a": FIRING + "        self.lost(1)\n", "b": 'bus.on("things/mad", print)\nform.on("x/", 1)'},
            ["b listens to things/mad, which nobody declares."],
        ),
        (
            {"a": 'x, fire = bus.declare(name, Thing)\nfire(1)\ny, z = bus.declare("a/b", T)\nz(1)'},
            ["a declares an event whose name is not written there."],
        ),
        (
            dict.fromkeys("ab", 'x, fire = bus.declare("a/b", T)\nfire(1)'),
            ["a/b is declared in a and in b."],
        ),
    ],
)
def test_an_event_that_is_never_fired_or_never_declared_is_told(modules: dict[str, str], said: list[str]) -> None:
    assert list(scan_events(modules).faults) == said


def test_who_listens_is_told_by_the_name_of_the_event_and_by_its_attribute() -> None:
    fired = FIRING + "        self.lost(1)\n"
    modules = {
        "a": fired,
        "b": 'bus.on("things/made", print)',
        "c": "from a import Things\nbus.on(things.made, print)",
        "d": 'x.made, x.tell = bus.declare("other/made", Thing)\nx.tell(1)\nbus.on(x.made, print)',
    }
    scan = scan_events(modules)
    assert scan.faults == ()
    assert scan.events["things/made"].heard_by == ("b", "c")
    assert scan.events["other/made"].heard_by == ("d",)


def test_a_catalog_of_events_with_a_fault_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogs, "scan_code", lambda: scan_events({"a": FIRING}))
    with pytest.raises(InvariantError, match="is never dispatched"):
        catalogs.events_reference()
