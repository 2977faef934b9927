"""What can be offered at all: the contract of a method, told by its annotations when its service is added."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Any, cast

import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from greenroom.actors.remote import RemoteServices, remote, remote_stream
from greenroom.protocol.errors import ConfigError, RemoteError
from tests.remote.conftest import Project, Release, Releases


class Bad:
    """Methods of which none can be offered."""

    @remote("x")  # type: ignore[type-var]
    def plain(self) -> int:
        return 1

    @remote("x")
    async def _private(self) -> int:
        return 1

    @remote("x")
    async def bare(self, version) -> int:  # type: ignore[no-untyped-def]
        return 1

    @remote("x")
    async def mute(self, version: str):  # type: ignore[no-untyped-def]
        return 1

    @remote("x")
    async def many(self, *versions: str) -> int:
        return 1

    @remote("x")
    async def more(self, **versions: str) -> int:
        return 1

    @remote("x")
    async def placed(self, version: str, /) -> int:
        return 1

    @remote("x")
    async def defaulting(self, version: str = "4") -> int:
        return 1

    @remote("x")
    async def nothing(self, version: str | None = None) -> int:
        return 1

    @remote("x")
    async def unset(self, version: str = UNSET) -> int:  # type: ignore[assignment]
        return 1

    @remote("x")
    async def never_unset(self, version: str | UnsetType) -> int:
        return 1

    @remote("x")
    async def alive(self, version: Releases) -> int:
        return 1

    @remote("x")
    async def calling(self, version: Callable[[], None]) -> int:
        return 1

    @remote("x")
    async def listed(self, version: list[Project]) -> int:
        return 1

    @remote("x")
    async def mixed(self, version: Project | int) -> int:
        return 1

    @remote("x")
    async def giving(self) -> Releases:
        return Releases()

    @remote("x")
    async def unknown(self, version: Nowhere) -> int:  # type: ignore[name-defined]  # noqa: F821
        return 1

    @remote("x")
    async def key(self, key: str) -> int:
        return 1

    @remote("x")
    async def repeating(self, repeatable: bool) -> int:
        return 1

    @remote("x")
    async def twice(self, the_version: str, theVersion: str) -> int:  # noqa: N803
        return 1

    @remote("x")
    async def clashing(self, version: Project, version_id: str) -> int:
        return 1

    @staticmethod
    @remote("x")
    async def static(version: str) -> int:
        return 1

    async def once(self, version: str) -> int:
        return 1

    cast("Any", remote_stream("x"))(once)

    async def untold(self, version: str) -> Any:
        yield 1

    cast("Any", remote_stream("x"))(untold)

    @remote_stream("x")
    async def living(self, version: str) -> AsyncIterator[Releases]:
        yield Releases()


IN_A_PARAMETER = {
    "bare", "many", "more", "placed", "defaulting", "nothing", "unset", "never_unset", "alive", "calling", "listed",
    "mixed", "key", "repeating", "twice", "clashing",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in vars(Bad) if not name.startswith("__")])
def test_a_method_that_nobody_could_call_is_refused_by_class_method_and_parameter(name: str) -> None:
    services = RemoteServices()
    services.lookups.register(Project, {"a": Project("apple")}.get)
    owner = type("Shop", (), {name: vars(Bad)[name]})
    with pytest.raises(ConfigError) as refused:
        services.add("shop", owner())
    error = refused.value
    assert error.code == "REMOTE"
    assert f"Shop.{name}" in error.message
    assert "shop/x cannot be offered" in error.message
    assert ("parameter" in error.context) == (name in IN_A_PARAMETER)
    if name in IN_A_PARAMETER:
        assert f"parameter {error.context['parameter']} of" in error.message
    assert services.methods() == []
    assert services.streams() == []


class Good:
    @remote("kept")
    async def kept(self) -> int:
        await trio.lowlevel.checkpoint()
        return 1

    @remote("optional")
    async def optional(self, first: Project | None, then: Project | UnsetType = UNSET) -> list[str]:
        await trio.lowlevel.checkpoint()
        return [str(first and first.name), "unset" if isinstance(then, UnsetType) else then.name]


class Hiding(Good):
    async def kept(self) -> int:
        raise AssertionError("it is not marked any more, and was called")


def test_what_is_not_marked_is_not_offered_even_if_it_hides_what_is() -> None:
    services = RemoteServices()
    services.lookups.register(Project, {"a": Project("apple")}.get)
    services.add("good", Hiding())
    assert [endpoint.name for endpoint in services.methods()] == ["good/optional"]


def test_a_service_is_added_whole_or_not_at_all() -> None:
    services = RemoteServices()
    services.lookups.register(Project, {"a": Project("apple")}.get)
    owner = type("Half", (Good,), {"plain": vars(Bad)["plain"]})
    with pytest.raises(ConfigError, match=r"Half\.plain is not an async method"):
        services.add("half", owner())
    assert services.methods() == []


@pytest.mark.parametrize("namespace", ["", "a/b", "1a", "a b", "a\n", "ü", "a" * 65, "a?x", ".."])
def test_a_namespace_that_no_url_could_hold_is_refused(namespace: str) -> None:
    with pytest.raises(ConfigError, match="letters, digits"):
        RemoteServices().add(namespace, Good())


def test_a_namespace_of_the_gateways_own_and_a_name_that_is_taken_are_refused() -> None:
    services = RemoteServices()
    for own in ("terminal", "rpc", "run"):
        with pytest.raises(ConfigError, match="of the gateway's own"):
            services.add(own, Good())
    services.lookups.register(Project, {"a": Project("apple")}.get)
    withdraw = services.add("good", Good())
    with pytest.raises(ConfigError, match="good/kept is offered already"):
        services.add("good", Good())
    withdraw()
    services.add("good", Good())
    withdraw()
    assert len(services.methods()) == 2, "a withdrawal takes back its own registration only"


def test_a_service_with_nothing_marked_is_refused() -> None:
    with pytest.raises(ConfigError, match="Project has nothing to offer"):
        RemoteServices().add("project", Project("a"))


async def call(services: RemoteServices, name: str, **arguments: Any) -> Any:
    endpoint = services.method(name)
    assert endpoint is not None
    params = endpoint.read(msgspec.Raw(msgspec.json.encode(arguments)), endpoint.contract.arguments)
    return msgspec.json.decode(await endpoint(params))


async def test_an_id_stands_for_what_is_there_at_the_call_and_may_be_null_or_left_out() -> None:
    projects = {"a": Project("apple")}
    services = RemoteServices()
    services.lookups.register(Project, projects.get, wire="key")
    services.add("good", Good())
    assert await call(services, "good/optional", firstKey="a") == ["apple", "unset"]
    projects["a"] = Project("pear")
    assert await call(services, "good/optional", firstKey=None, thenKey="a") == ["None", "pear"]
    with pytest.raises(RemoteError) as missing:
        await call(services, "good/optional", firstKey="hunter2")
    assert (missing.value.code, missing.value.context) == ("gateway/lookup-not-found", {"field": "firstKey"})
    assert "hunter2" not in missing.value.message


async def test_how_ids_are_looked_up_can_be_overridden_for_a_while() -> None:
    services = RemoteServices()
    close = services.lookups.register(Project, {"a": Project("apple")}.get)
    services.add("good", Good())
    outer = services.lookups.override(Project, {"a": Project("outer")}.get)
    inner = services.lookups.override(Project, {"a": Project("inner")}.get)
    assert await call(services, "good/optional", firstId="a") == ["inner", "unset"]
    outer()
    outer()
    assert await call(services, "good/optional", firstId="a") == ["inner", "unset"]
    inner()
    assert await call(services, "good/optional", firstId="a") == ["apple", "unset"]
    close()
    with pytest.raises(RemoteError) as gone:
        await call(services, "good/optional", firstId="a")
    assert gone.value.code == "gateway/lookup-unavailable"


@given(st.lists(st.integers(0, 5), max_size=20))
def test_of_all_ways_to_look_up_that_are_not_closed_the_newest_holds(moves: list[int]) -> None:
    async def main() -> None:
        services, names = RemoteServices(), count()
        first = Project("registered")
        services.lookups.register(Project, {"a": first}.get)
        ways: dict[int, tuple[Callable[[], None], Project]] = {0: (lambda: None, first)}
        for move in moves:
            if move % 2 and len(ways) > 1:  # close one that is open, or was closed already
                number = list(ways)[1:][move % (len(ways) - 1)]
                ways[number][0]()
                ways[number][0]()
                del ways[number]
            else:
                found = Project(f"number {next(names)}")
                ways[max(ways) + 1] = (services.lookups.override(Project, {"a": found}.get), found)
            assert await services.lookups.find(Project, "a") is ways[max(ways)][1]

    trio.run(main)


async def test_a_lookup_that_fails_tells_its_caller_nothing_and_the_log_everything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(id: str) -> Project:
        raise ValueError("hunter2")

    services = RemoteServices()
    services.lookups.register(Project, fail)
    services.add("good", Good())
    with pytest.raises(RemoteError) as failed:
        await call(services, "good/optional", firstId="a")
    assert failed.value.code == "gateway/lookup-failed"
    assert "hunter2" not in str(failed.value.encode())
    assert failed.value.context["correlation"] in caplog.text
    assert "hunter2" in caplog.text


def test_a_class_is_looked_up_in_one_way_unless_it_is_overridden() -> None:
    services = RemoteServices()
    with pytest.raises(ConfigError, match="No ids of Project"):
        services.lookups.override(Project, {"a": Project("a")}.get)
    services.lookups.register(Project, {"a": Project("a")}.get)
    with pytest.raises(ConfigError, match="Ids of Project are looked up already"):
        services.lookups.register(Project, {"a": Project("a")}.get)


def test_the_contract_of_a_method_is_what_its_annotations_say() -> None:
    services = RemoteServices()
    releases = Releases()
    services.lookups.register(Project, releases.find)
    services.add("release", releases)
    endpoint = services.method("release/start")
    assert endpoint is not None
    fields = msgspec.structs.fields(endpoint.contract.arguments)
    assert [(field.encode_name, field.required) for field in fields] == [
        ("version", True), ("projectId", True), ("channel", False),
    ]  # fmt: skip
    assert endpoint.contract.result is Release
    assert endpoint.contract.about.startswith("Start a release of a project.")
