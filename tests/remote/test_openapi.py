"""`greenroom api`: the OpenAPI document is valid, says what the contracts say, and is that of what is served."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.cli.services import offer_services_of
from greenroom.actors.remote import RemoteServices
from greenroom.actors.remote.openapi import openapi_document
from greenroom.actors.services import offer_services
from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import ConfigError, RemoteError
from tests.gateway.conftest import Site
from tests.remote.conftest import Project, Releases, posted, raw_post

# Neither says the types of what it gives.
jsonschema: Any = import_module("jsonschema")
openapi: Any = import_module("openapi_spec_validator")

GREENROOM = Path(sys.executable).with_name("greenroom")

MODULE = '''
import msgspec
from greenroom import remote


class Node(msgspec.Struct):
    """Holds others."""

    name: str
    within: list["Node"] = []


class Shop:
    @remote("nodes")
    async def nodes(self, depth: int | msgspec.UnsetType = msgspec.UNSET) -> Node:
        """The whole range.

        As a tree.
        """
        return Node("shop")


def services(runtime):
    return {"shop": Shop()}
'''


def document(*services: tuple[str, object]) -> dict[str, Any]:
    remote = RemoteServices()
    remote.lookups.register(Project, Releases().find)
    for namespace, service in services:
        remote.add(namespace, service)
    return openapi_document(remote, title="test", version="1")


def greenroom(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([GREENROOM, *words], cwd=folder, capture_output=True, text=True, timeout=30)


async def test_what_every_runtime_offers_is_a_valid_document() -> None:
    async with open_runtime() as runtime:
        found = openapi_document(runtime.remote, title="greenroom", version="1")
        again = RemoteServices()
        offer_services(again, runtime.agents, runtime.sessions, runtime.jobs, runtime.bus)
        assert json.dumps(found) == json.dumps(openapi_document(again, title="greenroom", version="1"))
    openapi.validate(found)
    assert "/api/agent/post" in found["paths"]


def test_a_document_of_one_s_own_services_and_of_none_is_valid() -> None:
    openapi.validate(document())
    found = document(("release", Releases()), ("second", Releases()))
    openapi.validate(found)
    post = found["paths"]["/api/release/start"]["post"]
    assert post["operationId"] == "release.start"
    assert post["summary"] == "Start a release of a project."
    assert post["description"] == "On the stable channel where nothing else is said."
    assert "/api/release/hidden" not in found["paths"]
    with pytest.raises(jsonschema.ValidationError):
        openapi.validate({**found, "paths": 5})


@pytest.mark.parametrize(
    "args",
    [
        {"version": "4.2", "projectId": "a"},
        {"version": "4.2", "projectId": "a", "channel": {"name": "beta"}},
        {"version": "4.2", "projectId": "a", "channel": {"name": "beta", "share": 0.5}},
        {"version": "4.2", "projectId": "a", "channel": {"name": "beta", "share": 2}},
        {"version": "4.2", "projectId": "a", "channel": {"name": "gamma"}},
        {"version": "4.2", "projectId": "a", "channel": None},
        {"version": 4, "projectId": "a"},
        {"version": "4.2"},
        {"version": "4.2", "projectId": "a", "more": 1},
        {},
    ],
)
async def test_a_body_fits_the_document_if_and_only_if_it_is_carried_out(
    releases: tuple[Site, Releases], args: dict[str, Any]
) -> None:
    site, service = releases
    found = document(("release", service))
    post = found["paths"]["/api/release/start"]["post"]
    body = {"args": args}
    schema = post["requestBody"]["content"]["application/json"]["schema"]
    fits = jsonschema.Draft202012Validator({**schema, "components": found["components"]}).is_valid(body)
    answer = await raw_post(site, posted("/api/release/start", json.dumps(body).encode()))
    assert answer["ok"] is fits
    told = post["responses"]["200"]["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator({**told, "components": found["components"]}).validate(answer)


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, 1e300]) | st.sampled_from(["", "beta"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "share", "x"]), inner),
    max_leaves=5,
)
arguments = st.dictionaries(st.sampled_from(["version", "projectId", "project_id", "channel", "more"]), json_values)


@given(arguments | st.fixed_dictionaries({"version": st.just("4"), "projectId": st.just("a"), "channel": json_values}))
def test_arguments_are_read_if_and_only_if_they_fit_the_document(args: dict[str, Any]) -> None:
    remote = RemoteServices()
    remote.lookups.register(Project, Releases().find)
    remote.add("release", Releases())
    endpoint = remote.method("release/start")
    assert endpoint is not None
    found = openapi_document(remote, title="test", version="1")
    schema = {"$ref": "#/components/schemas/release.start", "components": found["components"]}
    try:
        endpoint.read(msgspec.Raw(msgspec.json.encode(args)), endpoint.contract.arguments)
        read = True
    except RemoteError:
        read = False
    assert read == jsonschema.Draft202012Validator(schema).is_valid(args)


def test_the_command_prints_the_document_of_what_a_module_offers(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(MODULE, "utf-8")
    (tmp_path / "greenroom.toml").write_text('[remote]\nservices = "shop"\n[journal]\ndata = "kept.db"\n', "utf-8")
    done = greenroom("api", "--config", "greenroom.toml", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    openapi.validate(found)
    assert {"/api/shop/nodes", "/api/agent/list", "/api/session/read"} <= set(found["paths"])
    assert found["components"]["schemas"]["Node"]["properties"]["within"]["items"] == {
        "$ref": "#/components/schemas/Node"
    }
    assert not (tmp_path / "kept.db").exists(), "it was only looked at"


async def test_a_module_that_offers_nothing_or_what_cannot_be_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "shop_empty.py").write_text("x = 1\n", "utf-8")
    (tmp_path / "shop_odd.py").write_text("def services(runtime):\n    return [runtime]\n", "utf-8")
    bad = MODULE.replace("depth: int | msgspec.UnsetType = msgspec.UNSET", "depth")
    (tmp_path / "shop_bad.py").write_text(bad, "utf-8")
    async with open_runtime() as runtime:
        for module, code, words in (
            ("shop_nowhere", "FUNCTIONS", "There is no module shop_nowhere"),
            ("shop_empty", "SERVICES", "has no `services`"),
            ("shop_odd", "SERVICES", "a mapping of namespaces to services"),
            ("shop_bad", "REMOTE", r"The parameter depth of Shop\.nodes is not annotated"),
        ):
            with pytest.raises(ConfigError, match=words) as refused:
                offer_services_of(module, runtime)
            assert refused.value.code == code
