"""One TOML file: what it says, what is wrong with it, and that flags win over it."""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.config import TABLES, Config, load_config, override, read_config
from greenroom.actors.config.reference import config_reference, explain, nearest_key
from greenroom.actors.config.seams import SEAMS, open_seam
from greenroom.actors.config.writing import config_toml
from greenroom.protocol.errors import ConfigError

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


def test_nothing_is_a_configuration_of_defaults() -> None:
    assert read_config({}) == Config()


def test_a_file_is_read_with_defaults_for_what_it_does_not_say(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text('[gateway]\nport = 0\n[terminals]\nnames = ["a", "b"]\n[journal]\ndata = "x.journal"\n')
    config = load_config(file)
    assert (config.gateway.port, config.gateway.host) == (0, "127.0.0.1")
    assert config.terminals.names == ("a", "b")
    assert config.journal is not None
    assert config.journal.data == "x.journal"
    assert config.workspaces is None


def test_everything_unknown_is_named_at_once_with_what_was_probably_meant() -> None:
    with pytest.raises(ConfigError) as refused:
        read_config({"gatway": {}, "gateway": {"prot": 1, "host": "x", "zzzzzzzz": 2}, "termnals": 3})
    assert refused.value.code == "CONFIG_UNKNOWN_KEY"
    assert refused.value.context["keys"] == [
        {"key": "[gatway]", "nearest": "[gateway]"},
        {"key": "gateway.prot", "nearest": "gateway.port"},
        {"key": "gateway.zzzzzzzz", "nearest": None},
        {"key": "[termnals]", "nearest": "[terminals]"},
    ]


@pytest.mark.parametrize(
    ("document", "code", "said"),
    [
        ({"gateway": {"port": 65_536}}, "CONFIG_VALUE", "gateway.port"),
        ({"gateway": {"port": "8642"}}, "CONFIG_VALUE", "gateway.port"),
        ({"gateway": {"grace": -1}}, "CONFIG_VALUE", "gateway.grace"),
        ({"gateway": 7}, "CONFIG_VALUE", "gateway"),
        ({"terminals": {"names": [""]}}, "CONFIG_VALUE", "terminals.names"),
        ({"terminals": {"cap": 0}}, "CONFIG_VALUE", "terminals.cap"),
        ({"terminals": {"names": ["a", "a"]}}, "CONFIG_CONFLICT", "a twice"),
        ({"gateway": {"cert": "x.pem"}}, "CONFIG_CONFLICT", "gateway.key"),
        ({"journal": {}}, "CONFIG_VALUE", "data"),
        ({"workspaces": {"roots": []}}, "CONFIG_VALUE", "workspaces.roots"),
        ({"databases": {"files": {"shop": 1}}}, "CONFIG_VALUE", "databases.files"),
        ({"workspaces": {"roots": ["."], "tools": "both"}}, "CONFIG_VALUE", "workspaces.tools"),
        ({"questions": {"terminal": "ann"}}, "CONFIG_CONFLICT", "no terminal ann"),
        ({"todos": {}}, "CONFIG_VALUE", "several"),
    ],
)
def test_what_a_key_cannot_be_is_refused_by_its_name(document: dict[str, Any], code: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_config(document)
    assert refused.value.code == code
    assert said in refused.value.message


SECRET = "sk-Vq9-not-for-your-eyes"


@pytest.mark.case("pipeline", 39)
def test_a_misspelled_table_and_a_misspelled_key_are_one_error_with_both_nearest_names() -> None:
    with pytest.raises(ConfigError) as refused:
        read_config({"agent_lop": {}, "agent_loop": {"max_paralel_tool_calls": 3}})
    assert refused.value.context["keys"] == [
        {"key": "[agent_lop]", "nearest": "[agent_loop]"},
        {"key": "agent_loop.max_paralel_tool_calls", "nearest": "agent_loop.max_parallel_tool_calls"},
    ]
    assert "did you mean [agent_loop]?" in refused.value.message
    assert "did you mean agent_loop.max_parallel_tool_calls?" in refused.value.message


@pytest.mark.case("pipeline", 39)
@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"llm": {"key": SECRET}}, "llm.key"),
        ({"llm": {"key": f"{SECRET}\n"}}, "llm.key"),
        ({"llm": {"key": [SECRET]}}, "llm.key"),
        ({"llm": {"api_key": SECRET}}, "llm.api_key"),
        ({"bash": {"root": ".", "env": ["HOME", SECRET]}}, "bash.env"),
        ({"llm": {"kye": SECRET}}, "llm.kye"),
        ({"llm": SECRET}, "llm"),
        ({"lm": SECRET}, "[lm]"),
        ({"approvals": {"mode": SECRET}}, "approvals.mode"),
        ({"llm": {"base_url": f"https://me:{SECRET}@model.example/v1"}}, "llm.base_url"),
        ({"llm": {"base_url": f"https://me:{SECRET}@[model.example/v1"}}, "llm.base_url"),
    ],
)
def test_a_secret_in_the_file_is_refused_and_repeated_nowhere(document: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_config(document)
    error = refused.value
    assert key in error.message
    told: BaseException | None = error
    while told is not None:
        assert SECRET not in f"{told!r} {told}", "not in what led to it either"
        told = told.__cause__ or told.__context__
    assert SECRET not in str(error.context)


def test_the_name_of_a_seam_as_a_table_is_told_how_the_seam_is_filled() -> None:
    for name, seam in SEAMS.items():
        if name not in TABLES:
            with pytest.raises(ConfigError) as refused:
                read_config({name: {}})
            assert seam.chosen_by in refused.value.message
            assert refused.value.context["keys"] == [{"key": f"[{name}]", "nearest": None}]
            assert all(provider in refused.value.message for provider in seam.built_in)


def test_every_seam_is_chosen_by_a_key_and_what_comes_along_can_be_loaded() -> None:
    text = config_reference()
    for name, definition in SEAMS.items():
        lines = explain(definition.chosen_by)
        assert lines is not None
        assert f"Requires: a provider of `{name}`." in lines
        assert f"| `{name}`: {definition.about} | {definition.kind} |" in text
        seam = open_seam(name)
        assert all(callable(seam.choose(provider)) for provider in definition.built_in)


def test_keys_that_do_not_fit_are_both_named() -> None:
    with pytest.raises(ConfigError) as refused:
        read_config({"llm": {"script": "x.json", "provider": "openai"}})
    assert (refused.value.code, refused.value.context["keys"]) == ("CONFIG_CONFLICT", ["llm.script", "llm.provider"])


@pytest.mark.parametrize(("text", "code"), [("x = [", "TOML"), ("x = " + "[" * 100_000, "TOML"), (None, "FILE")])
def test_what_is_no_file_of_toml_is_refused(tmp_path: Path, text: str | None, code: str) -> None:
    file = tmp_path / "greenroom.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_config(file)
    assert refused.value.code == code


def test_what_is_given_wins_over_the_file_and_none_leaves_it() -> None:
    config = read_config({"gateway": {"port": 1, "host": "::1"}})
    given = override(config, gateway={"port": 2, "host": None, "cert": None}, journal={"data": Path("x")})
    assert (given.gateway.port, given.gateway.host) == (2, "::1")
    assert given.journal is not None
    assert given.journal.data == "x"
    assert override(config, workspaces={"roots": None}) == config
    with pytest.raises(ConfigError):
        override(config, gateway={"port": 99_999})


def test_the_files_that_the_documentation_shows_can_be_used() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", (DOCS / "policies.md").read_text("utf-8"), re.DOTALL)
    config = read_config(tomllib.loads(text))
    assert config.policies.timeout is not None
    assert config.approvals.terminal == "reviewer"


KEYS = st.text(max_size=9) | st.sampled_from(
    [*TABLES, "port", "names", "roots", "files", "data", "timeout", "retry", "spill", "key", "options", "tools", "mode"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda each: st.dictionaries(KEYS, each, max_size=4) | st.lists(each, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_whatever_a_document_holds_it_is_a_configuration_or_refused(document: dict[str, Any]) -> None:
    with suppress(ConfigError):
        assert isinstance(read_config(document), Config)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
OPTIONS = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | st.datetimes() | st.dates() | st.times(),
    lambda each: st.dictionaries(TEXTS.filter(bool), each, max_size=3) | st.lists(each, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(TEXTS.filter(bool), OPTIONS, max_size=3), st.lists(TEXTS.filter(bool), unique=True, max_size=3))
def test_what_is_written_is_read_as_the_same(options: dict[str, Any], names: list[str]) -> None:
    tables = {"llm": {"options": options}, "terminals": {"names": names}, "policies": {"timeout": {"seconds": 5}}}
    config = read_config(tables)
    written = "\n".join(config_toml(config))
    assert read_config(tomllib.loads(written)) == config
    assert all(each.isprintable() for each in written.replace("\n", ""))


def test_what_is_not_set_is_a_comment() -> None:
    lines = list(config_toml(Config()))
    assert {"# cert is not set", "# [journal] is not there", "[gateway]", 'host = "127.0.0.1"'} <= set(lines)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("policies.spil", "policies.spill"),
        ("[gatway]", "gateway"),
        ("gateway.prot", "gateway.port"),
        ("nothing.like.it", None),
    ],
)
def test_a_key_that_there_is_not_is_told_with_the_nearest_one(word: str, meant: str | None) -> None:
    assert nearest_key(word) == meant


def test_a_session_that_nothing_keeps_is_told_what_would() -> None:
    with pytest.raises(ConfigError, match=r"Add --data FILE, or \[journal\] data or \[sessions\] root"):
        read_config({"agent_loop": {"session": "tutor"}})


def test_every_key_is_explained_and_in_the_reference() -> None:
    text = config_reference()
    for name, struct in TABLES.items():
        assert f"## `[{name}]`" in text
        for field in msgspec.structs.fields(struct):
            lines = explain(f"{name}.{field.name}")
            assert lines is not None
            assert lines[1], f"{name}.{field.name} says nothing of itself"
            assert f"| `{field.name}` |" in text
    assert explain("gateway.nothing") is None
    assert explain("nothing") is None
    assert {name for name in TABLES if "." not in name} == {field.name for field in msgspec.structs.fields(Config)}
