"""What installed distributions provide, and which of them is to blame."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from greenroom.actors.cli.composing import open_composition
from greenroom.actors.cli.models import open_model
from greenroom.actors.cli.providers import check_providers
from greenroom.actors.config import Config, read_config
from greenroom.actors.config.seams import SEAMS, open_seam
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


async def test_a_key_is_in_no_error_of_a_provider_that_quotes_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "def model(settings):\n    raise LookupError('not ' + settings.credentials[settings.key])\n"
    installed(folder, "telltale", "telltale = telltale:model", code=code)
    monkeypatch.setenv("MODEL_KEY", "sk-Vq9-not-for-your-eyes")
    with pytest.raises(SeamError) as refused:
        async with open_model("telltale", ModelSettings(key="MODEL_KEY")):
            pass
    assert "not ***" in refused.value.message
    assert "telltale 1.0" in refused.value.message


async def test_what_is_installed_for_no_seam_is_told_by_a_check_and_harms_nobody(folder: Path) -> None:
    installed(folder, "misspelled", "model = misspelled:model", group="greenroom.lmm")
    with pytest.raises(
        SeamError, match=r"misspelled 1\.0 provides model for a seam lmm, which there is not"
    ) as refused:
        await check_providers(Config())
    assert refused.value.code == "NO_PROVIDER"
    async with open_composition(Config()) as runtime:
        assert runtime.tools.count


async def test_every_way_to_ask_for_a_provider_that_is_not_there_is_told_before_anything_starts() -> None:
    documents: list[dict[str, Any]] = [
        {"llm": {"provider": "nobody"}},
        {"policies": {"spill": {"max_inline_bytes": 1, "store": "nobody"}}},
        {"policies": {"metrics": {"meter": "nobody"}}},
        {"databases": {"files": {}, "drivers": ["memory", "nobody"]}},
        {"sessions": {"root": "logs", "persistence": "nobody"}},
        {"subagents": {"provider": "nobody"}},
        {"tools": {"add": ["nobody"]}},
    ]
    assert len(documents) == len(SEAMS)
    for document in documents:
        with pytest.raises(SeamError, match="no provider nobody"):
            await check_providers(read_config(document))
