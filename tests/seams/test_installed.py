"""What installed distributions provide, and which of them is to blame."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from greenroom.actors.cli.models import open_model
from greenroom.actors.config.seams import open_seam
from greenroom.actors.providers.settings import ModelSettings
from greenroom.protocol.errors import SeamError
from tests.seams.installed import installed

CODE = """
from contextlib import asynccontextmanager
from greenroom import ScriptedProvider

@asynccontextmanager
async def model(settings):
    yield ScriptedProvider(["hello"])

@asynccontextmanager
async def number(settings):
    yield 7

def raising(settings):
    raise LookupError("no such model")

def nothing(settings):
    return None

constant = 7
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


async def test_a_distribution_adds_a_model_and_nothing_of_it_is_imported_before_it_is_chosen(folder: Path) -> None:
    installed(folder, "added-model", "added = added_model:model", code=CODE)
    seam = open_seam("llm")
    assert "added" in seam.names
    assert seam.by("added") == "added-model 1.0"
    assert "added_model" not in sys.modules
    async with open_model("added", ModelSettings()) as model:
        assert callable(model.stream)


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ("bad = no_such_module:model", "No module named 'no_such_module'"),
        ("bad = broken_model:missing", "has no attribute 'missing'"),
        ("bad = broken_model:constant", "is no function"),
        ("bad = broken_model:raising", "no such model"),
        ("bad = broken_model:nothing", "TypeError"),
        ("bad = broken_model:number", "which has no method stream"),
        ("bad = broken model : : x", "AttributeError"),
    ],
)
async def test_a_broken_entry_point_is_told_with_the_distribution_that_has_it(
    folder: Path, point: str, said: str
) -> None:
    installed(folder, "broken-model", point, code=CODE)
    with pytest.raises(SeamError) as refused:
        async with open_model("bad", ModelSettings()):
            pass
    assert refused.value.code == "BROKEN_PROVIDER"
    assert said in refused.value.message
    assert "broken-model 1.0" in refused.value.message
    async with open_model("scripted", ModelSettings()):
        pass  # who does not choose it is not harmed


async def test_two_distributions_of_one_name_are_both_named(folder: Path) -> None:
    installed(folder / "a", "ann-model", "same = ann_model:model", code=CODE)
    installed(folder / "b", "bob-model", "same = bob_model:model", code=CODE)
    sys.path[:0] = [str(folder / "a"), str(folder / "b")]
    with pytest.raises(SeamError) as refused:
        open_seam("llm")
    assert refused.value.code == "DUPLICATE_PROVIDER"
    assert "ann-model 1.0" in refused.value.message
    assert "bob-model 1.0" in refused.value.message


def test_nobody_takes_the_name_of_what_comes_along(folder: Path) -> None:
    installed(folder, "other-openai", "openai = other_openai:model", code=CODE)
    with pytest.raises(SeamError, match=r"of greenroom and of other-openai 1\.0") as refused:
        open_seam("llm")
    assert refused.value.code == "DUPLICATE_PROVIDER"
