"""One call by either way in: JSON-RPC on a WebSocket, and POST."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.client import connect
from greenroom.actors.gateway import Access, AccessToken, GatewayLimits, SocketLimits, read_tokens
from greenroom.protocol.access import EVERYTHING, Grants
from greenroom.protocol.errors import ConfigError, GreenroomError, RemoteError
from tests.gateway.conftest import Site, peer, site_with, until
from tests.gateway.raw import raw
from tests.remote.conftest import Project, Release, Releases, Signed, offered, post, post_over, posted

Offered = tuple[Site, Releases]
GOOD = {"version": "4.2", "projectId": "a"}


async def by_rpc(site: Site, name: str, args: Any) -> tuple[str, Any]:
    """What a call gives over a WebSocket: "" and the value, or the code and the error."""
    async with peer(site.url) as caller:
        answer = await caller.call(name, args)
        return ("", answer["result"]) if "result" in answer else (answer["error"]["data"]["code"], answer["error"])


async def by_post(site: Site, name: str, args: Any) -> tuple[str, Any]:
    status, answer = await post(site, name, args)
    assert status == (200 if "/method-" not in str(answer) else 404)
    return ("", answer.get("value")) if answer["ok"] else (answer["error"]["code"], answer["error"])


Way = Callable[[Site, str, Any], Awaitable[tuple[str, Any]]]
both_ways = pytest.mark.parametrize("way", [by_rpc, by_post])


@both_ways
async def test_a_method_is_called_and_gives_what_its_contract_says_and_no_more(releases: Offered, way: Way) -> None:
    site, service = releases
    assert await way(site, "release/start", GOOD) == ("", {"version": "4.2", "projectName": "apple"})
    assert await way(site, "release/start", {**GOOD, "channel": {"name": "beta", "share": 1}}) == (
        "", {"version": "4.2", "projectName": "apple"},
    )  # fmt: skip
    assert service.started == ["4.2", "4.2 beta"]
    assert await way(site, "release/count", {}) == ("", 2)
    assert await way(site, "release/forget", {}) == ("", None)


@pytest.mark.case("pipeline", 38)
@both_ways
@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({**GOOD, "hunter2": "hunter2"}, "hunter2"),
        ({"version": "4.2"}, "projectId"),
        ({**GOOD, "project": "hunter2"}, "project"),
        ({**GOOD, "version": 4.2}, "version"),
        ({**GOOD, "version": None}, "version"),
        ({**GOOD, "projectId": 1}, "projectId"),
        ({**GOOD, "projectId": None}, "projectId"),
        ({**GOOD, "channel": "hunter2"}, "channel"),
        ({**GOOD, "channel": {"name": "hunter2"}}, "channel.name"),
        ({**GOOD, "channel": {"name": "beta", "share": 2}}, "channel.share"),
        ({**GOOD, "channel": {"name": "beta", "share": "1"}}, "channel.share"),
        ({**GOOD, "again": "hunter2"}, "again"),
    ],
)
async def test_an_argument_that_does_not_fit_is_named_and_its_value_is_not(
    releases: Offered, way: Way, args: Any, field: str
) -> None:
    site, service = releases
    code, error = await way(site, "release/start", args)
    assert code == "gateway/arguments-invalid"
    assert error["code"] in (-32602, "gateway/arguments-invalid")
    told = error["data"] if "data" in error else error["details"]
    assert (told["endpoint"], told["field"]) == ("release/start", field)
    if field != "hunter2":
        assert "hunter2" not in json.dumps(error)
    assert service.started == []


@both_ways
async def test_what_a_method_refuses_is_told_as_it_is(releases: Offered, way: Way) -> None:
    site, _ = releases
    code, error = await way(site, "release/start", {**GOOD, "version": "frozen"})
    assert (code, error["message"]) == ("release/frozen", "Nothing is released on Fridays.")
    if way is by_rpc:
        assert error["code"] == -32002
        assert error["data"] == {
            "code": "release/frozen", "message": error["message"], "context": {"until": "Monday"},
            "endpoint": "release/start",
        }  # fmt: skip
    else:
        assert error["details"] == {"until": "Monday", "endpoint": "release/start"}
    code, error = await way(site, "release/start", {**GOOD, "version": "none"})
    assert (code, error["code"]) == ("release/not-found", -32001 if way is by_rpc else code)
    code, error = await way(site, "release/start", {**GOOD, "projectId": "hunter2"})
    assert (code, error["code"]) == ("gateway/lookup-not-found", -32001 if way is by_rpc else code)
    assert "hunter2" not in json.dumps(error)


@both_ways
@pytest.mark.parametrize(
    ("given", "code"),
    [
        (ValueError("hunter2"), "gateway/internal"),
        (GreenroomError("TARGET", "hunter2"), "gateway/internal"),
        (ConfigError("FILE", "hunter2", {"file": "hunter2"}), "gateway/internal"),
        (ExceptionGroup("hunter2", [ValueError("hunter2")]), "gateway/internal"),
        (RemoteError("release/odd", "hunter2", {"odd": object()}), "gateway/internal"),
        (None, "gateway/result-invalid"),
        (5, "gateway/result-invalid"),
        ({"version": "hunter2", "projectName": 5}, "gateway/result-invalid"),
        (Release("\ud800"), "gateway/result-invalid"),
        (Project("hunter2"), "gateway/result-invalid"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_a_fault_of_the_service_is_told_by_a_number_in_the_log(
    releases: Offered, way: Way, given: Any, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    site, service = releases
    service.next = given
    found, error = await way(site, "release/give", {})
    assert found == code
    assert "hunter2" not in json.dumps(error)
    told = error["data"]["context"] if "data" in error else error["details"]
    assert told["correlation"] in caplog.text
    assert told["correlation"] in error["message"]
    if way is by_rpc:
        assert error["code"] == -32603


@both_ways
async def test_a_subclass_tells_no_more_than_its_class(releases: Offered, way: Way) -> None:
    site, service = releases
    service.next = Signed("4.2")
    assert await way(site, "release/give", {}) == ("", {"version": "4.2", "projectName": ""})


@both_ways
async def test_what_is_not_marked_or_not_there_cannot_be_reached(releases: Offered, way: Way) -> None:
    site, _ = releases
    for name in ("release/hidden", "release/find", "release/__init__", "release/strat"):
        code, error = await way(site, name, {})
        assert code == "gateway/method-unavailable"
        assert "release/start" in error["message"]


async def test_what_is_in_no_service_is_no_method_or_404(releases: Offered) -> None:
    site, _ = releases
    code, error = await by_rpc(site, "relaese/start", GOOD)
    assert (code, error["code"], error["data"]["context"]["nearest"]) == ("METHOD", -32601, "release/start")
    for name in ("relaese/start", "terminal/list", "%00/start"):
        status, answer = await post(site, name, GOOD)
        assert (status, answer["ok"], answer["error"]["code"]) == (404, False, "gateway/service-unavailable")


@both_ways
async def test_a_withdrawn_service_says_that_it_was(way: Way) -> None:
    async with site_with() as site:
        site.runtime.remote.lookups.register(Project, Releases().find)
        withdraw = site.runtime.remote.add("release", Releases())
        assert await way(site, "release/count", {}) == ("", 0)
        withdraw()
        withdraw()
        code, error = await way(site, "release/count", {})
        assert code == "gateway/definition-unavailable"
        assert error["code"] in (-32601, code)
        site.runtime.remote.add("release", Releases())
        assert await way(site, "release/count", {}) == ("", 0)


# -------------------------------------------------------------------- who may


ADA, ROOT = "ada's own long token", "the token of the administrator"


@asynccontextmanager
async def guarded(*reach: str, limits: GatewayLimits | None = None) -> AsyncGenerator[Offered, None]:
    tokens = [AccessToken.of("ada", ADA, Grants(remote=reach)), AccessToken.of("root", ROOT, EVERYTHING)]
    async with offered(access=Access(tokens), limits=limits) as site_and_service:
        yield site_and_service


async def test_a_token_without_the_grant_sees_no_remote_method() -> None:
    async with guarded() as (site, _), connect(site.url, token=ADA) as ada, connect(site.url, token=ROOT) as root:
        with pytest.raises(GreenroomError) as refused:
            await ada.call("release/count", {}, int)
        assert (refused.value.code, "release/" in str(refused.value.context["known"])) == ("METHOD", False)
        status, answer = await post(site, "release/count", authorization=f"Bearer {ADA}")
        assert (status, answer["error"]["code"]) == (404, "gateway/service-unavailable")
        assert "release/start" not in str(answer)
        assert await root.call("release/count", {}, int) == 0
        assert await post(site, "release/count", authorization=f"Bearer {ROOT}") == (200, {"ok": True, "value": 0})


async def test_a_token_reaches_the_methods_that_it_grants() -> None:
    async with guarded("release/c*", "other/*") as (site, _), connect(site.url, token=ADA) as ada:
        assert await ada.call("release/count", {}, int) == 0
        with pytest.raises(RemoteError) as refused:
            await ada.call("release/start", GOOD, Release)
        assert refused.value.code == "gateway/method-unavailable"
        assert refused.value.context["known"] == ["release/count"]


def test_a_file_of_tokens_grants_remote_methods_by_name_and_none_where_it_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(f'[old]\ntoken_sha256 = "{"0" * 64}"\ntools = ["*"]\n', "utf-8")
    (old,) = read_tokens(file)
    assert not old.grants.may_reach("release/start")
    file.write_text(f'[new]\ntoken_sha256 = "{"0" * 64}"\nremote = ["release/*", "agent/list"]\n', "utf-8")
    (new,) = read_tokens(file)
    reached = [
        name for name in ("release/start", "agent/list", "agent/post", "releases/x") if new.grants.may_reach(name)
    ]
    assert reached == ["release/start", "agent/list"]


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {ROOT}"}])
async def test_without_a_valid_token_nothing_is_told(headers: dict[str, str]) -> None:
    async with guarded("*") as (site, _), raw(site.gateway.port) as connection:
        answers: set[tuple[int, str]] = set()
        for path in ("/api/release/count", "/api/nothing/here"):
            await connection.stream.send_all(posted(path, b'{"args":{}}', **headers))
            response = await connection.response("POST")
            answers.add((response.status, response.text))
        assert {status for status, _ in answers} == {401}
        assert len(answers) == 1


async def test_the_requests_of_a_token_are_limited_over_http_as_well() -> None:
    async with guarded("*", limits=GatewayLimits(requests=0.2)) as (site, _):
        assert (await post(site, "release/count", authorization=f"Bearer {ADA}"))[0] == 200
        async with raw(site.gateway.port) as connection:
            await connection.stream.send_all(
                posted("/api/release/count", b'{"args":{}}', authorization=f"Bearer {ADA}")
            )
            assert (await connection.response("POST")).status == 429


async def test_a_call_ends_with_the_token_that_made_it() -> None:
    limits = GatewayLimits(socket=SocketLimits(ping_interval=0.05))
    access = Access([AccessToken.of("ada", ADA, Grants(remote=("*",)))])
    async with offered(access=access, limits=limits) as (site, service), trio.open_nursery() as nursery:
        answers: list[Any] = []

        async def hold() -> None:
            answers.append(await post(site, "release/hold", authorization=f"Bearer {ADA}"))

        nursery.start_soon(hold)
        await service.entered.wait()
        access.replace([AccessToken.of("bob", ROOT, EVERYTHING)])
        await until(lambda: answers)
        assert answers[0][1]["error"]["code"] == "CANCELLED"
        assert service.ended == ["cancelled"]


# -------------------------------------------------------------------- cancellation


async def test_rpc_cancel_ends_the_method(releases: Offered) -> None:
    site, service = releases
    for then, code in ((None, -32800), ("raise", -32800), ("return", None)):
        async with peer(site.url) as caller:
            args = {} if then is None else {"then": then}
            await caller.send({"jsonrpc": "2.0", "id": 7, "method": "release/hold", "params": args})
            await service.entered.wait()
            await caller.send({"jsonrpc": "2.0", "method": "rpc/cancel", "params": {"id": 7}})
            answer = await caller.receive()
            if code is None:
                assert answer["result"] == "all the same"
            else:
                assert (answer["error"]["code"], answer["error"]["data"]["code"]) == (code, "CANCELLED")
                assert "hunter2" not in str(answer)
        service.entered = trio.Event()
    assert service.ended == ["cancelled"] * 3


async def test_the_end_of_the_socket_ends_the_method(releases: Offered, caplog: pytest.LogCaptureFixture) -> None:
    site, service = releases
    async with peer(site.url) as caller:
        await caller.send({"jsonrpc": "2.0", "id": 7, "method": "release/hold", "params": {"then": "raise"}})
        await service.entered.wait()
    await site.until(lambda: service.ended)
    await site.until_nothing_is_left()
    assert "correlation" not in caplog.text, "a method that was cancelled has not failed"


async def test_a_disconnect_ends_the_method(releases: Offered) -> None:
    site, service = releases
    for number in (1, 2):
        async with raw(site.gateway.port) as connection:
            await connection.stream.send_all(posted("/api/release/hold", b'{"args":{}}'))
            await service.entered.wait()
        await site.until(lambda number=number: len(service.ended) == number)  # type: ignore[misc]
        service.entered = trio.Event()
    await site.until_nothing_is_left()


async def test_who_says_that_it_sends_no_more_has_gone_and_is_told_so(releases: Offered) -> None:
    site, service = releases
    async with raw(site.gateway.port) as connection:
        await connection.stream.send_all(posted("/api/release/hold", b'{"args":{}}'))
        await service.entered.wait()
        assert isinstance(connection.stream, trio.SocketStream)
        await connection.stream.send_eof()
        response = await connection.response("POST")
        assert json.loads(response.text)["error"]["code"] == "CANCELLED"


async def test_what_is_sent_ahead_is_answered_after_the_call(releases: Offered) -> None:
    site, service = releases
    async with raw(site.gateway.port) as connection:
        await connection.stream.send_all(posted("/api/release/hold", b'{"args":{}}'))
        await service.entered.wait()
        await connection.stream.send_all(posted("/api/release/count", b'{"args":{}}'))
        await trio.testing.wait_all_tasks_blocked(0.05)
        service.let_go.set()
        assert json.loads((await connection.response("POST")).text) == {"ok": True, "value": "let go"}
        assert json.loads((await connection.response("POST")).text) == {"ok": True, "value": 0}
        assert await post_over(connection, "release/count") == (200, {"ok": True, "value": 0})


async def test_who_sends_without_end_while_its_call_runs_is_cut_off(releases: Offered) -> None:
    site, service = releases
    async with raw(site.gateway.port) as connection:
        await connection.stream.send_all(posted("/api/release/hold", b'{"args":{}}'))
        await service.entered.wait()
        await connection.stream.send_all(b"x" * 100_000)
        response = await connection.response("POST")
        assert json.loads(response.text)["error"]["code"] == "CANCELLED"
    assert service.ended == ["cancelled"]


async def test_a_stop_of_the_gateway_ends_calls_of_either_kind(releases: Offered) -> None:
    site, service = releases
    async with peer(site.url) as caller, raw(site.gateway.port) as connection:
        await caller.send({"jsonrpc": "2.0", "id": 7, "method": "release/hold", "params": {}})
        await service.entered.wait()
        service.entered = trio.Event()
        await connection.stream.send_all(posted("/api/release/hold", b'{"args":{}}'))
        await service.entered.wait()
        await site.gateway.stop()
        assert service.ended == ["cancelled"] * 2
        assert (await caller.receive())["error"]["data"]["code"] == "SHUTDOWN"
        assert await connection.ended() == b""


# -------------------------------------------------------------------- calls with a key


async def test_a_call_with_a_key_is_done_once_and_outlives_its_connection(releases: Offered) -> None:
    site, service = releases
    hello, keyed = {"client": "a-client-of-its-own"}, {"key": "once"}
    async with peer(site.url) as first:
        await first.result("rpc/hello", hello)
        await first.send({"jsonrpc": "2.0", "id": 7, "method": "release/hold", "params": keyed})
        await service.entered.wait()
    async with peer(site.url) as second:
        await second.result("rpc/hello", hello)
        await second.send({"jsonrpc": "2.0", "id": 8, "method": "release/hold", "params": {**keyed, "again": True}})
        service.let_go.set()
        assert (await second.receive())["result"] == "let go"
        assert await second.result("release/hold", keyed) == "let go"
        wrong = await second.call("release/start", {**GOOD, **keyed})
        assert wrong["error"]["data"]["code"] == "KEY"
        assert wrong["error"]["data"]["endpoint"] == "release/start"
    assert service.ended == []


async def test_a_call_of_which_nothing_is_known_is_carried_out_again_only_if_that_does_no_harm(
    releases: Offered,
) -> None:
    site, service = releases
    lost = {"key": "lost", "again": True, "visit": "before the server began anew"}
    async with peer(site.url) as caller:
        await caller.result("rpc/hello", {"client": "a-client-of-its-own"})
        assert await caller.result("release/count", lost) == 0
        refused = await caller.call("release/start", {**GOOD, **lost, "key": "other"})
        assert refused["error"]["data"]["code"] == "OUTCOME"
        assert refused["error"]["data"]["endpoint"] == "release/start"
    assert service.started == []


async def test_a_key_needs_a_hello_and_is_no_argument_of_a_post(releases: Offered) -> None:
    site, _ = releases
    code, _ = await by_rpc(site, "release/count", {"key": "once"})
    assert code == "HELLO"
    code, error = await by_post(site, "release/count", {"key": "once"})
    assert (code, error["details"]["field"]) == ("gateway/arguments-invalid", "key")


async def test_calls_in_a_batch_are_answered_together(releases: Offered) -> None:
    site, _ = releases
    async with peer(site.url) as caller:
        batch = [
            {"jsonrpc": "2.0", "id": 1, "method": "release/start", "params": GOOD},
            {"jsonrpc": "2.0", "id": 2, "method": "release/nothing", "params": GOOD},
            {"jsonrpc": "2.0", "method": "release/start", "params": GOOD},
            {"jsonrpc": "2.0", "id": 3, "method": "release/count"},
        ]
        await caller.send(batch)
        answers = {answer["id"]: answer for answer in await caller.receive()}
        assert answers[1]["result"]["version"] == "4.2"
        assert answers[2]["error"]["data"]["code"] == "gateway/method-unavailable"
        assert set(answers) == {1, 2, 3}


async def test_positional_params_are_no_call(releases: Offered) -> None:
    site, _ = releases
    code, error = await by_rpc(site, "release/start", ["4.2", "a"])
    assert (code, error["code"]) == ("gateway/input-invalid", -32602)
