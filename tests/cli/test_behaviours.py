"""What a module offers as behaviours."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from greenroom.actors.cli.behaviours import behaviours_of, import_behaviours
from greenroom.actors.system import Runtime
from greenroom.protocol.errors import ConfigError

RUNTIME = cast("Runtime", object())
"""Only handed on."""


def module(source: str) -> ModuleType:
    found = ModuleType("flows")
    exec(source, vars(found))
    return found


def test_the_public_functions_of_a_module_are_its_behaviours() -> None:
    source = (
        "from json import dumps\ndef one(c): ...\nasync def two(c): ...\ndef _three(c): ...\nclass Four: ...\nfive = 5"
    )
    assert list(behaviours_of(module(source), RUNTIME)) == ["one", "two"]


def test_what_a_module_calls_functions_comes_before_them() -> None:
    source = "def one(c): ...\nfunctions = {'first': one}"
    assert list(behaviours_of(module(source), RUNTIME)) == ["first"]


def test_functions_may_be_made_for_the_runtime() -> None:
    source = "def functions(runtime):\n    return {'ask': lambda c: runtime}"
    ask: Any = behaviours_of(module(source), RUNTIME)["ask"]
    assert ask(None) is RUNTIME


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "no public functions"),
        ("functions = {}", "no public functions"),
        ("functions = [print]", "no mapping"),
        ("functions = {'one': 1}", "'one'"),
        ("functions = {1: print}", "1"),
        ("def functions(runtime): return None", "no mapping"),
    ],
)
def test_a_module_that_offers_none_is_refused(source: str, says: str) -> None:
    with pytest.raises(ConfigError, match="offers no behaviours") as error:
        behaviours_of(module(source), RUNTIME)
    assert says in error.value.message


@pytest.mark.parametrize("source", ["import no_such_thing", "def", "1 / 0", "raise SystemExit(3)"])
def test_a_module_that_cannot_be_imported_is_told_with_the_reason(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["", *sys.path])
    (tmp_path / "broken_flow.py").write_text(source, "utf-8")
    with pytest.raises(ConfigError, match="broken_flow failed while it was imported: ") as error:
        import_behaviours("broken_flow")
    assert error.value.code == "FUNCTIONS"
    assert "current folder" not in error.value.message


@pytest.mark.parametrize("name", ["no_such_flow", "no_such.flow", ""])
def test_a_module_that_is_not_there_is_told_with_where_it_is_looked_for(name: str) -> None:
    with pytest.raises(ConfigError, match=r"There is no module .*current folder"):
        import_behaviours(name)
