"""Requests that no polite client sends: each gets one answer, runs nothing, and leaves nothing."""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greenroom.actors.gateway import GatewayLimits, SocketLimits
from greenroom.actors.gateway.connection import Connection
from greenroom.actors.system import open_runtime
from tests.cancelling import Doomed, at_every_step
from tests.gateway.conftest import Site, peer
from tests.gateway.raw import head, raw
from tests.remote.conftest import Project, Releases, offered, post, post_over, posted

Offered = tuple[Site, Releases]
PATH = "/api/release/start"
GOOD = b'{"args":{"version":"4.2","projectId":"a"}}'


async def status_of(site: Site, request: bytes, method: str = "POST") -> tuple[int, str]:
    async with raw(site.gateway.port) as connection:
        await connection.stream.send_all(request)
        response = await connection.response(method)
        return response.status, response.text


@pytest.mark.case("pipeline", 38)
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.test"},
        {"host": "evil.test", "origin": "http://evil.test"},
        {"origin": "http://evil.test"},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
    ],
)
async def test_evil_hosts_and_origins_are_403_before_anything_else_is_told(
    releases: Offered, headers: dict[str, str]
) -> None:
    site, service = releases
    answers = {
        await status_of(site, posted(path, body, **headers, **more))
        for path in (PATH, "/api/nothing/here", "/api/release/hidden")
        for body in (GOOD, b"no json")
        for more in ({}, {"content_type": "text/plain"}, {"authorization": "Bearer wrong"})
    }
    assert len(answers) == 1
    assert answers.pop()[0] == 403
    assert service.started == []


@pytest.mark.parametrize(
    "kind",
    [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", "json"],
)
async def test_another_type_than_json_is_415(releases: Offered, kind: str | None) -> None:
    site, service = releases
    fields = {"Host": "localhost", "Content-Length": str(len(GOOD))} | ({} if kind is None else {"Content-Type": kind})
    assert (await status_of(site, head("POST", PATH, fields) + GOOD))[0] == 415
    assert service.started == []


async def test_json_may_say_its_charset(releases: Offered) -> None:
    site, service = releases
    status, _ = await status_of(site, posted(PATH, GOOD, content_type="Application/JSON; charset=utf-8"))
    assert (status, service.started) == (200, ["4.2"])


async def test_two_types_are_415(releases: Offered) -> None:
    site, _ = releases
    fields = [("Host", "localhost"), ("Content-Length", str(len(GOOD)))]
    fields += [("Content-Type", "application/json"), ("Content-Type", "text/plain")]
    assert (await status_of(site, head("POST", PATH, fields) + GOOD))[0] == 415


async def test_a_body_over_the_cap_is_413_however_it_comes(releases: Offered) -> None:
    site, service = releases
    most = GatewayLimits().socket.message_size
    fitting = b'{"args":{"version":"%b","projectId":"a"}}' % (b"x" * (most - 38))
    assert len(fitting) > most
    assert (await status_of(site, posted(PATH, fitting)))[0] == 413
    said = head("POST", PATH, {"Host": "localhost", "Content-Type": "application/json", "Content-Length": "9" * 15})
    assert (await status_of(site, said))[0] == 413
    chunked = {"Host": "localhost", "Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    body = b"%x\r\n%b\r\n" % (len(fitting), fitting)
    assert (await status_of(site, head("POST", PATH, chunked) + body))[0] == 413
    assert service.started == []
    least = b'{"args":{"version":"%b","projectId":"a"}}' % (b"x" * (most - 39))
    assert len(least) <= most
    assert (await status_of(site, posted(PATH, least)))[0] == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", None),
        (b"{", None),
        (b"null", None),
        (b"[]", None),
        (b"5", None),
        (b'"args"', None),
        (b"{}", "args"),
        (b'{"args":{},"more":"hunter2"}', "more"),
        (b'{"version":"hunter2","projectId":"a"}', "version"),
        (b'{"args":"hunter2"}', None),
        (b'{"args":[]}', None),
        (b'{"args":null}', None),
        (b'{"args":{"version":NaN}}', None),
        (b'{"args":{"version":"\xff"}}', None),
        (b'{"args":{"version":"\\ud800","projectId":"a"}}', None),
        (b'\xef\xbb\xbf{"args":{}}', None),
        (GOOD + b"hunter2", None),
        (b'{"args":' + b"[" * 100_000 + b"]" * 100_000 + b"}", None),
        (b'{"args":{"version":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}}", None),
        (b"[" * 100_000, None),
    ],
    ids=lambda value: repr(value[:40]) if isinstance(value, bytes) else str(value),
)
async def test_what_is_no_call_is_told_so_without_its_values(releases: Offered, body: bytes, field: str | None) -> None:
    site, service = releases
    status, text = await status_of(site, posted(PATH, body))
    answer = json.loads(text)
    assert (status, answer["ok"]) == (200, False)
    assert answer["error"]["code"] in ("gateway/input-invalid", "gateway/arguments-invalid")
    if field is not None:
        assert (answer["error"]["code"], answer["error"]["details"]["field"]) == ("gateway/input-invalid", field)
    assert "hunter2" not in text
    assert service.started == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_another_method_than_post_is_405(releases: Offered, method: str) -> None:
    site, _ = releases
    async with raw(site.gateway.port) as connection:
        response = await connection.get(PATH, {"Host": "localhost", "Content-Length": "0"}, method)
        assert (response.status, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "path",
    ["/api", "/api/", "/api/release", "/api/release/start/x", "/API/release/start", "/api//start", "/api/release/"],
)
async def test_a_path_that_is_not_that_of_a_method_is_404(releases: Offered, path: str) -> None:
    site, service = releases
    assert (await status_of(site, posted(path, GOOD)))[0] == 404
    assert service.started == []


@pytest.mark.parametrize("name", ["..", "a%2Fb", "a%3Fx=1", "%F0%9F%98%80", "__class__", "start%00", "x" * 5000])
async def test_hostile_names_reach_nothing(releases: Offered, name: str) -> None:
    site, service = releases
    for path in (f"/api/{name}/start", f"/api/release/{name}"):
        status, text = await status_of(site, posted(path, GOOD))
        assert status == 404
        assert len(text) < 1000
    async with peer(site.url) as caller:
        answer = await caller.call(f"release/{name}", {"version": "4.2", "projectId": "a"})
        assert answer["error"]["code"] == -32601
        assert len(answer["error"]["message"]) < 1000
    assert service.started == []


async def test_a_client_that_hangs_in_the_middle_of_its_body_is_given_up() -> None:
    limits = GatewayLimits(body_timeout=0.2, socket=SocketLimits(close_timeout=0.2))
    async with offered(limits=limits) as (site, service), raw(site.gateway.port) as connection:
        whole = posted(PATH, GOOD)
        await connection.stream.send_all(whole[:-5])
        assert (await connection.response("POST")).status == 408
        await connection.ended()
        assert service.started == []


async def test_the_system_asks_after_a_client_that_waits_and_is_told_nothing(releases: Offered) -> None:
    site, service = releases
    async with raw(site.gateway.port) as connection:
        await connection.stream.send_all(posted("/api/release/hold", b'{"args":{}}'))
        await service.entered.wait()
        (ref,) = (site.runtime.tree.find("/gateway/connections").children or {}).values()
        assert isinstance(ref.actor, Connection)
        accepted: Any = ref.actor._accepted
        if sys.platform == "linux":
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15


async def test_many_clients_that_vanish_leave_nothing(releases: Offered) -> None:
    site, service = releases

    async def vanish(size: int) -> None:
        async with raw(site.gateway.port) as connection:
            await connection.stream.send_all(posted("/api/release/hold", b'{"args":{}}')[:size])

    async with trio.open_nursery() as nursery:
        for number in range(60):
            nursery.start_soon(vanish, 1000 if number % 2 else number)
    await site.until_nothing_is_left()
    assert len(service.ended) <= 30


@given(st.binary(max_size=60) | st.text(max_size=30).map(lambda text: json.dumps({"args": text}).encode()))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_body_breaks_the_gateway(body: bytes) -> None:
    async def main() -> None:
        async with offered() as (site, _), raw(site.gateway.port) as connection:
            await connection.stream.send_all(posted(PATH, body))
            assert (await connection.response("POST")).status == 200
            assert (await post_over(connection, "release/count"))[1] == {"ok": True, "value": 0}

    trio.run(main)


@given(st.lists(st.integers(1, 200), max_size=8), st.lists(st.sampled_from(["start", "count", "nothing"]), max_size=4))
@settings(max_examples=30)
def test_requests_are_answered_in_turn_however_their_bytes_come(sizes: list[int], names: list[str]) -> None:
    bodies = {"start": GOOD, "count": b'{"args":{}}', "nothing": b"{"}
    whole = b"".join(posted(f"/api/release/{name}", bodies[name]) for name in names)

    async def main() -> None:
        async with offered() as (site, service), raw(site.gateway.port) as connection, trio.open_nursery() as nursery:

            async def send() -> None:
                at = 0
                for size in [*sizes, len(whole)]:
                    if piece := whole[at : at + size]:
                        await connection.stream.send_all(piece)
                    at += size
                    await trio.lowlevel.checkpoint()

            nursery.start_soon(send)
            started = 0
            for name in names:
                response = await connection.response("POST")
                if name == "nothing":
                    assert response.status == 404
                    return  # what follows a body that was not read is not looked at
                started += name == "start"
                value = json.loads(response.text)["value"]
                assert value == (started if name == "count" else {"version": "4.2", "projectName": "apple"})
            assert len(service.started) == started

    trio.run(main)


async def test_a_call_that_is_cancelled_at_any_moment_leaves_no_task_and_no_half_answer() -> None:
    async def act(site: Site) -> Any:
        return await post(site, "release/start", {"version": "4.2", "projectId": "a"})

    async def scenario(doomed: Doomed) -> None:
        async with offered(limits=GatewayLimits(socket=SocketLimits(close_timeout=0.5))) as (site, service):
            ended = await doomed(act, site)
            if not ended.cancelled:
                assert ended.value == (200, {"ok": True, "value": {"version": "4.2", "projectName": "apple"}})
            await site.until_nothing_is_left()
            assert service.started in ([], ["4.2"])

    assert await at_every_step(scenario) > 10


async def test_adding_a_service_changes_nothing_for_the_gateways_own_methods() -> None:
    async with open_runtime() as runtime:
        runtime.remote.lookups.register(Project, Releases().find)
        runtime.remote.add("release", Releases())
        gateway = await runtime.serve()
        async with peer(gateway.url) as caller:
            assert await caller.result("terminal/list") == {"terminals": []}
            assert "endpoint" not in (await caller.call("terminal/attach", {"terminal": "no"}))["error"]["data"]
