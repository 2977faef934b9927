"""The bridge at a gateway's port: bytes on real sockets, readers that vanish, and servers that stop."""

from __future__ import annotations

import json
import socket
import struct
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.actors.client import Client, connect
from greenroom.actors.gateway import GatewayLimits
from greenroom.actors.gateway.access import Access, AccessToken
from greenroom.actors.gateway.bridge import add_bridge
from greenroom.actors.gateway.routes import Routes
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.access import EVERYTHING, Grants
from greenroom.protocol.bridge import TOKEN_HEADER
from greenroom.protocol.forms import Form
from greenroom.protocol.terminals import AnswerSuccess
from tests.bridge.people import Person, Watch
from tests.gateway.conftest import ONE_FIELD, Site, accept_stream, site_with
from tests.gateway.raw import UPGRADE, Raw, head, raw

HOST = {"Host": "localhost"}
NAMES = ["a/b", "a?x=1", "a#b", "..", ".", "50%", "{other}", "ü😀", " ", "a b", ":name", "%2F", "a\u2028b"]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with site_with() as site:
        yield site


def base(site: Site) -> str:
    return f"http://{site.gateway.authority}"


def posting(values: Any, id: str, target: str = "/terminals/ops", **headers: str) -> bytes:
    body = json.dumps({"id": id, "values": values}).encode()
    return head("POST", target, {**HOST, "Content-Length": str(len(body)), **headers}) + body


async def opened(connection: Raw, target: str = "/terminals/ops", **headers: str) -> bytes:
    """Ask for a stream; the head of the response."""
    await connection.stream.send_all(head("GET", target, {**HOST, **headers}))
    return (await connection.until(b"\r\n\r\n")).partition(b"\r\n\r\n")[0]


# -------------------------------------------------------------------- bytes


@pytest.mark.case("terminals", 22)
async def test_a_stream_and_an_answer_go_over_real_sockets(site: Site) -> None:
    async with raw(site.gateway.port) as reading, raw(site.gateway.port) as answering:
        told = await opened(reading)
        lines = told.decode().split("\r\n")
        assert lines[0] == "HTTP/1.1 200 OK"
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        assert headers.pop("date")
        assert headers == {
            "x-content-type-options": "nosniff",
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "connection": "keep-alive",
            "x-accel-buffering": "no",
            "transfer-encoding": "chunked",
        }
        site.nursery.start_soon(site.terminals.ask, "a", "ops", Form(ONE_FIELD))
        id = await site.the_form()
        (record,) = site.terminals.pending()
        frame = (
            f'event: pending\nid: {id}\ndata: {{"id":"{id}","schema":{{"fields":[{{"control":"text","name":"x","rule":'
            f'{{"required":true}}}}]}},"status":"pending","time":{record.time},"from":"a","to":"ops"}}\n\n'
        ).encode()
        assert (await reading.until(frame)).endswith(b"\r\n\r\n%x\r\n%b\r\n" % (len(frame), frame))
        for values, status in (({}, 422), ({"x": "v"}, 200), ({"x": "v"}, 422)):
            await answering.stream.send_all(posting(values, id))  # one connection serves them all
            response = await answering.response("POST")
            assert response.status == status
            assert response.headers["content-type"] == "application/json"
            assert "connection" not in response.headers


async def test_refusals_have_no_words(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        response = await connection.get("/terminals/nobody", HOST)
        assert (response.status, response.text, response.headers["content-length"]) == (404, "", "0")
        assert "content-type" not in response.headers
        for body, status in ((b"", 400), (b"[]", 422)):
            await connection.stream.send_all(
                head("POST", "/terminals/ops", {**HOST, "Content-Length": str(len(body))}) + body
            )
            response = await connection.response("POST")
            assert (response.status, response.text) == (status, "")
        response = await connection.get("/terminals/ops", {**HOST, "Content-Length": "0"}, "PUT")
        assert (response.status, response.headers["allow"]) == (405, "GET, POST")


async def test_a_body_may_come_in_any_way(site: Site) -> None:
    body = b'{"id":"x","values":{}}'
    chunked = {**HOST, "Transfer-Encoding": "chunked"}
    async with raw(site.gateway.port) as connection:
        await connection.stream.send_all(head("POST", "/terminals/ops", chunked))
        for byte in body:
            await connection.stream.send_all(b"1\r\n%c\r\n" % byte)
        await connection.stream.send_all(b"0\r\n\r\n")
        assert (await connection.response("POST")).status == 422

        expecting = {**HOST, "Content-Length": str(len(body)), "Expect": "100-continue"}
        await connection.stream.send_all(head("POST", "/terminals/ops", expecting))
        assert await connection.until(b"\r\n\r\n") == b"HTTP/1.1 100 \r\n\r\n"
        await connection.stream.send_all(body)
        assert b" 422 " in await connection.until(b'"unknown"}}')


async def test_a_body_that_is_not_wanted_is_not_waited_for(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        huge = {**HOST, "Content-Length": "100000000"}
        await connection.stream.send_all(head("POST", "/terminals/nobody", huge) + b"x" * 100)
        response = await connection.response("POST")
        assert (response.status, response.headers["connection"]) == (404, "close")
    async with raw(site.gateway.port) as connection:
        await connection.stream.send_all(head("POST", "/terminals/ops", huge) + b"x" * 1_048_577)
        response = await connection.response("POST")
        assert (response.status, response.text, response.headers["connection"]) == (413, "", "close")


@pytest.mark.parametrize(
    "request_",
    [
        head("POST", "/terminals/ops", {**HOST, "Transfer-Encoding": "chunked"}) + b"nonsense\r\n",
        head("POST", "/terminals/ops", {**HOST, "Content-Length": "10"}) + b"{}",
    ],
)
async def test_a_body_that_is_malformed_or_breaks_off_is_told_so(site: Site, request_: bytes) -> None:
    async with raw(site.gateway.port) as connection:
        await connection.stream.send_all(request_)
        assert isinstance(connection.stream, trio.SocketStream)
        await connection.stream.send_eof()
        assert (await connection.response("POST")).status == 400


async def test_a_body_that_trickles_in_is_given_up(autojump_clock: MockClock) -> None:
    async with open_runtime() as runtime:
        runtime.terminals.add("ops")
        routes = Routes()
        add_bridge(routes, runtime.terminals, Access(), GatewayLimits())
        connection = Raw(accept_stream(runtime, routes=routes))
        await connection.stream.send_all(head("POST", "/terminals/ops", {**HOST, "Content-Length": "1000"}))
        for _ in range(29):
            await connection.stream.send_all(b" ")
            await trio.sleep(1)
        assert (await connection.response("POST")).status == 408
        assert trio.current_time() == pytest.approx(30)


async def test_a_stream_needs_no_chunks_of_an_older_client(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        await connection.stream.send_all(head("GET", "/terminals/ops", HOST, "1.0"))
        told = await connection.until(b"\r\n\r\n")
        assert b"chunked" not in told
        assert b"connection: close" in told.lower()
        await trio.testing.wait_all_tasks_blocked()
        id = await site.ops.park(Form(ONE_FIELD), to="ops")
        await site.ops.stop()
        came = await connection.until(b"expire")
        assert f'"to":"ops"}}\n\nevent: expire\ndata: {{"id":"{id}"}}\n\n'.encode() in came  # no size in between


# -------------------------------------------------------------------- readers that go


@pytest.mark.case("terminals", 23)
@pytest.mark.case("reports/clients", 1)
@pytest.mark.parametrize("query", ["", "?events=all"])
async def test_fifty_readers_that_drop_their_sockets_leave_nothing(site: Site, query: str) -> None:
    await site.ops.park(Form(ONE_FIELD))
    await trio.testing.wait_all_tasks_blocked()
    tasks = trio.lowlevel.current_statistics().tasks_living
    async with AsyncExitStack() as stack:
        streams: list[trio.SocketStream] = []
        for _ in range(50):
            connection = await stack.enter_async_context(raw(site.gateway.port))
            await opened(connection, f"/terminals/ops{query}")
            await connection.until(b"pending")
            assert isinstance(connection.stream, trio.SocketStream)
            streams.append(connection.stream)
        assert site.terminals.subscriptions == site.gateway.connections == 50
        for stream in streams:
            # A reset in the place of a farewell (SO_LINGER with no time).
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await trio.aclose_forcefully(stream)
        await site.until(lambda: site.gateway.connections == 0)
        assert site.terminals.subscriptions == 0
        assert trio.lowlevel.current_statistics().tasks_living == tasks
    await site.ops.park(Form(ONE_FIELD))
    assert len(site.terminals.pending()) == 2


async def test_a_reader_that_only_closes_its_side_has_gone_too(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        await opened(connection)
        assert isinstance(connection.stream, trio.SocketStream)
        await connection.stream.send_eof()
        assert (await connection.ended()).endswith(b"0\r\n\r\n")
        await site.until_nothing_is_left()


async def test_what_a_reader_sends_after_its_request_is_not_looked_at(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        await opened(connection)
        await connection.stream.send_all(head("GET", "/terminals/nobody", HOST) + b"\0" * 100_000)
        await site.ops.park(Form(ONE_FIELD), to="ops")
        assert b" 404 " not in await connection.until(b"pending")


@pytest.mark.case("reports/clients", 2)
async def test_a_reader_that_takes_nothing_is_given_up_within_two_keepalive_periods(autojump_clock: MockClock) -> None:
    """As when something on the way takes no more bytes and keeps its connection open."""
    async with open_runtime() as runtime:
        runtime.terminals.add("ops")
        routes = Routes()
        add_bridge(routes, runtime.terminals, Access(), GatewayLimits())
        connection = Raw(accept_stream(runtime, routes=routes, lockstep=True))
        await opened(connection)
        await trio.testing.wait_all_tasks_blocked()
        assert runtime.terminals.subscriptions == 1
        began = trio.current_time()
        (ref,) = [ref for ref in (runtime.tree.root.children or {}).values() if "connection" in ref.path]
        await ref.wait_ended()
        assert runtime.terminals.subscriptions == 0
        assert trio.current_time() - began <= 30


async def test_a_reader_on_a_dead_line_is_given_up_by_the_system(site: Site) -> None:
    """Where nothing is acknowledged any more, the kernel would try for a quarter of an hour."""
    async with raw(site.gateway.port) as connection:
        await opened(connection)
        (ref,) = (site.gateway._connections.children or {}).values()
        accepted: Any = ref.actor
        if sys.platform == "linux":
            assert accepted._accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000


# -------------------------------------------------------------------- the fence

TOKEN = "a token of some length"


@pytest.mark.parametrize("path", ["/terminals/ops", "/questions/ops"])
async def test_a_stream_ends_with_the_grant_that_opened_it(autojump_clock: MockClock, path: str) -> None:
    access = Access([AccessToken.of("ada", TOKEN, Grants(attach=("ops",)))])
    async with open_runtime() as runtime:
        runtime.terminals.add("ops")
        routes = Routes()
        add_bridge(routes, runtime.terminals, access, GatewayLimits())
        connection = Raw(accept_stream(runtime, routes=routes))
        await connection.stream.send_all(head("GET", path, {**HOST, TOKEN_HEADER: TOKEN}))
        await connection.until(b"\r\n\r\n")
        await trio.testing.wait_all_tasks_blocked()
        assert runtime.terminals.subscriptions == 1
        access.replace([AccessToken.of("ada", TOKEN, Grants(attach=("other",)))])
        await trio.sleep(15)  # it is asked again with each keepalive
        await connection.until(b"0\r\n\r\n")
        assert runtime.terminals.subscriptions == 0


async def test_a_token_may_post_so_many_times_a_second(autojump_clock: MockClock) -> None:
    access = Access([AccessToken.of("ada", TOKEN, Grants(answer=("ops",)))])
    async with open_runtime() as runtime:
        runtime.terminals.add("ops")
        routes = Routes()
        add_bridge(routes, runtime.terminals, access, GatewayLimits(requests=1.0))
        connection = Raw(accept_stream(runtime, routes=routes))
        posted = head("POST", "/terminals/ops", {**HOST, TOKEN_HEADER: TOKEN, "Content-Length": "1"}) + b"x"
        told = []
        for _ in range(6):
            await connection.stream.send_all(posted)
            told.append((await connection.response("POST")).status)
        assert told == [400] * 5 + [429]
        await trio.sleep(1)
        await connection.stream.send_all(posted)
        assert (await connection.response("POST")).status == 400


FENCED = [
    ({"Host": "127.0.0.1", "Origin": "http://evil.example"}, False),
    ({"Host": "evil.example:{port}", "Origin": "http://evil.example:{port}"}, False),
    ({"Host": "127.0.0.1"}, True),
    ({"Host": "127.0.0.1", "Origin": "null"}, False),
    ({"Host": "localhost:{port}", "Origin": "http://localhost:{port}"}, True),
]


def at(site: Site, headers: dict[str, str]) -> dict[str, str]:
    return {name: value.replace("{port}", str(site.gateway.port)) for name, value in headers.items()}


async def posted(site: Site, headers: dict[str, str], id: str, name: str = "ops") -> int:
    """The status of an answer that is posted with these headers."""
    body = json.dumps({"id": id, "values": {"x": "v"}}).encode()
    async with raw(site.gateway.port) as connection:
        request = head("POST", f"/terminals/{name}", {**at(site, headers), "Content-Length": str(len(body))})
        await connection.stream.send_all(request + body)
        return (await connection.response("POST")).status


async def upgraded(site: Site, headers: dict[str, str]) -> int:
    async with raw(site.gateway.port) as connection:
        return (await connection.get("/rpc", {**at(site, headers), **UPGRADE})).status


@pytest.mark.case("reports/clients", 5)
@pytest.mark.parametrize(("headers", "passes"), FENCED)
async def test_an_upgrade_and_an_answer_pass_the_fence_or_change_nothing(
    site: Site, headers: dict[str, str], passes: bool
) -> None:
    id = await site.ops.park(Form(ONE_FIELD))
    assert await upgraded(site, headers) == (101 if passes else 403)
    assert await posted(site, headers, id, "nobody") == (404 if passes else 403)
    assert await posted(site, headers, id) == (200 if passes else 403)
    assert (site.parked("ops") == []) is passes


@asynccontextmanager
async def guarded() -> AsyncGenerator[Site]:
    """A site that asks for a token."""
    async with site_with(access=Access([AccessToken.of("ada", TOKEN, EVERYTHING)])) as site:
        yield site


@pytest.mark.case("reports/clients", 5)
@pytest.mark.parametrize("headers", [headers for headers, passes in FENCED if not passes])
async def test_the_fence_comes_before_a_token_tells_anything(headers: dict[str, str]) -> None:
    async with guarded() as site:
        id = await site.ops.park(Form(ONE_FIELD))
        for token in (TOKEN, f"not {TOKEN}"):
            assert await posted(site, {**headers, TOKEN_HEADER: token}, id) == 403
            assert await upgraded(site, {**headers, "Authorization": f"Bearer {token}"}) == 403
        assert site.parked("ops") == [id]


@pytest.mark.parametrize("headers", [headers for headers, passes in FENCED if passes])
async def test_who_passes_the_fence_needs_a_token_where_one_is_asked_for(headers: dict[str, str]) -> None:
    async with guarded() as site:
        id = await site.ops.park(Form(ONE_FIELD))
        assert await posted(site, {**headers, TOKEN_HEADER: f"not {TOKEN}"}, id) == 401
        assert await posted(site, {**headers, TOKEN_HEADER: TOKEN}, id) == 200


@pytest.mark.case("reports/clients", 5)
async def test_a_page_without_an_origin_passes_where_that_is_configured() -> None:
    async with site_with(trusted_origins=["null"]) as site:
        id = await site.ops.park(Form(ONE_FIELD))
        headers = {"Host": "127.0.0.1", "Origin": "null"}
        assert await upgraded(site, headers) == 101
        assert await posted(site, headers, id) == 200


# -------------------------------------------------------------------- names


@pytest.mark.case("reports/clients", 7)
@pytest.mark.parametrize("name", NAMES)
async def test_a_client_reaches_exactly_the_terminal_of_that_name(site: Site, name: str) -> None:
    for other in NAMES:
        site.terminals.add(other)
    watch = Watch()
    person = Person(watch)
    values: list[Any] = []

    async def asker() -> None:
        values.append(await site.terminals.ask(None, name, Form(ONE_FIELD)))
        watch.pulse()

    person.answer({"x": name})
    async with person.client(base(site), name) as client:
        await person.until(lambda: client.connected)
        site.nursery.start_soon(asker)
        await person.until(lambda: values)
    assert values == [{"x": name}]
    assert person.errors == []


async def test_a_name_in_a_path_is_decoded_as_one_segment(site: Site) -> None:
    for name in NAMES:
        site.terminals.add(name)
        async with raw(site.gateway.port) as connection:
            assert b" 200 " in await opened(connection, f"/terminals/{quote(name, safe='')}")
    async with raw(site.gateway.port) as connection:
        for target in ("/terminals/a/b", "/terminals/", "/terminals", "/terminals/ops/"):
            assert (await connection.get(target, HOST)).status == 404
    async with raw(site.gateway.port) as connection:
        assert (await connection.get("/terminals/%ff", HOST)).status == 400


# -------------------------------------------------------------------- clients beside each other


@pytest.mark.case("reports/clients", 3)
async def test_a_form_is_shown_once_to_each_client_and_dropped_by_all_once_it_is_answered(site: Site) -> None:
    site.nursery.start_soon(site.terminals.ask, "a", "ops", Form(ONE_FIELD))
    id = await site.the_form()
    watch = Watch()
    people = [Person(watch) for _ in range(3)]
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(people[0].client(base(site)))
        await watch.until(lambda: people[0].shown)
        first.disconnect()  # the line is cut, and the form is there again with the next one
        first.connect()
        await watch.until(lambda: first.connected)
        for person in people[1:]:
            await stack.enter_async_context(person.client(base(site)))
        await watch.until(lambda: all(person.shown for person in people))
        people[2].answer({"x": "v"})
        await watch.until(lambda: all(person.heard("answer") for person in people))
        await trio.testing.wait_all_tasks_blocked()
        assert [len(person.shown) for person in people] == [1, 1, 1]
        assert all(person.heard("answer") == [id] for person in people)
        assert [form.status for person in people for form in person.shown] == ["abandoned", "abandoned", "settled"]
        assert all(person.errors == [] for person in people)
    await site.until_nothing_is_left()


async def race(site: Site, client: Client, poster: Raw) -> tuple[list[str], list[dict[str, Any]]]:
    """Ask once, and answer over both wires in the same tick; who was accepted, and what the asker got."""
    accepted: list[str] = []
    values: list[dict[str, Any]] = []

    async def ask() -> None:
        form = Form({"fields": [{"control": "number", "name": "v"}]})
        values.append(await site.terminals.ask("a", "ops", form))

    async def by_socket(id: str) -> None:
        if isinstance(await client.answer("ops", id, {"v": 1}), AnswerSuccess):
            accepted.append("socket")

    async def by_http(id: str) -> None:
        await poster.stream.send_all(posting({"v": 2}, id))
        if (await poster.response("POST")).status == 200:
            accepted.append("http")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        id = await site.the_form()
        nursery.start_soon(by_socket, id)
        nursery.start_soon(by_http, id)
    return accepted, values


@pytest.mark.case("reports/asking", 5)
async def test_a_websocket_and_an_http_client_that_answer_at_once_have_one_winner(site: Site) -> None:
    answered: list[str] = []
    site.terminals.emitter.on("answer", lambda to, id, values: answered.append(id))
    async with connect(site.url) as client, raw(site.gateway.port) as poster:
        for _ in range(500):
            accepted, values = await race(site, client, poster)
            assert values == [{"v": {"socket": 1, "http": 2}[name]} for name in accepted]
            assert len(accepted) == 1
    assert len(answered) == len(set(answered)) == 500


@pytest.mark.case("reports/asking", 5)
async def test_the_same_answer_twice_in_a_row_is_accepted_once(site: Site) -> None:
    async with raw(site.gateway.port) as poster, connect(site.url) as client:
        await site.ops.park(Form(ONE_FIELD))
        (id,) = site.parked("ops")
        await poster.stream.send_all(posting({"x": "v"}, id) * 2)
        assert [(await poster.response("POST")).status for _ in range(2)] == [200, 422]
        await site.ops.park(Form(ONE_FIELD))
        (id,) = site.parked("ops")
        results = [await client.answer("ops", id, {"x": "v"}) for _ in range(2)]
        assert [result.success for result in results] == [True, False]


@pytest.mark.case("reports/asking", 5)
async def test_a_rejected_answer_of_one_client_does_not_change_what_another_may_send(site: Site) -> None:
    schema = {"fields": [{"control": "number", "name": "v"}, *ONE_FIELD["fields"]]}
    async with raw(site.gateway.port) as poster, connect(site.url) as client:
        id = await site.ops.park(Form(schema))
        await poster.stream.send_all(posting({"v": 7, "nope": 1}, id))
        assert (await poster.response("POST")).status == 422
        refused = await client.answer("ops", id, {"v": 8})
        assert not refused.success
        result = await client.answer("ops", id, {"x": "w"})
        assert isinstance(result, AnswerSuccess)
        assert result.value == {"x": "w"}


# -------------------------------------------------------------------- a server that stops


async def test_streams_just_end_when_the_server_stops(site: Site) -> None:
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(raw(site.gateway.port)) for _ in range(20)]
        for connection in connections:
            await opened(connection)
        began = trio.current_time()
        await site.gateway.stop()
        assert trio.current_time() - began < 1.5
        for connection in connections:
            assert (await connection.ended()).endswith(b"\r\n\r\n0\r\n\r\n")
        assert site.terminals.subscriptions == 0


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_a_reader_that_takes_nothing_does_not_hold_up_the_end(autojump_clock: MockClock, how: str) -> None:
    async def serve(task_status: trio.TaskStatus[Runtime]) -> None:
        async with open_runtime() as runtime:
            runtime.terminals.add("ops")
            task_status.started(runtime)
            await ending.wait()

    ending = trio.Event()
    async with trio.open_nursery() as nursery:
        runtime: Runtime = await nursery.start(serve)
        routes = Routes()
        add_bridge(routes, runtime.terminals, Access(), GatewayLimits())
        connection = Raw(accept_stream(runtime, routes=routes, lockstep=True))
        await opened(connection)
        await trio.testing.wait_all_tasks_blocked()
        ops = runtime.terminals.terminal("ops")
        assert ops is not None
        await ops.park(Form(ONE_FIELD), to="ops")
        await trio.testing.wait_all_tasks_blocked()  # its frame is on the way, and nobody takes it
        began = trio.current_time()
        if how == "stop":
            ending.set()
        else:
            nursery.cancel_scope.cancel()
    assert trio.current_time() - began <= 2 * GatewayLimits().socket.close_timeout
    assert runtime.terminals.subscriptions == 0


async def test_a_client_comes_back_after_the_server_did(site: Site) -> None:
    port = site.gateway.port
    person = Person(Watch())
    async with person.client(base(site)) as client:
        await person.until(lambda: client.connected)
        await site.gateway.stop()
        await person.until(lambda: person.heard("disconnect"))
        assert person.errors[:1] in ([], ["CONNECT"])
        await site.runtime.serve(port=port, name="again")
        await site.ops.park(Form(ONE_FIELD))
        await person.until(lambda: person.shown)
        assert len(person.shown) == 1


# -------------------------------------------------------------------- what the client and the bridge say to each other


async def test_a_person_answers_is_refused_and_answers_again(site: Site) -> None:
    custom = Form(
        {"fields": [{"control": "text", "name": "x", "rule": {"custom": lambda value, _: value != "no" or "not that"}}]}
    )
    values: list[Any] = []
    person = Person(Watch())

    async def asker() -> None:
        values.append(await site.terminals.ask("a", "ops", custom))
        person.watch.pulse()

    async with person.client(base(site)) as client:
        await person.until(lambda: client.connected)
        site.nursery.start_soon(asker)
        person.answer({"x": "no"})
        await person.until(lambda: len(person.shown) == 2)
        assert [error.message for error in person.shown[1].errors] == ["not that"]
        person.answer({"x": "yes"})
        await person.until(lambda: values)
    assert values == [{"x": "yes"}]
    assert person.errors == ["STATUS"]


async def test_a_client_hears_of_expiry_withdrawal_and_removal(site: Site) -> None:
    person = Person(Watch())
    async with person.client(base(site)) as client:
        await person.until(lambda: client.connected)
        expiring = await site.ops.park(Form(ONE_FIELD), to="ops")
        await person.until(lambda: person.shown)
        await site.ops.stop(expiring)
        await person.until(lambda: person.shown[0].outcome and person.heard("expire") == [expiring])
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(site.terminals.ask, "a", "ops", Form(ONE_FIELD))
                await person.until(lambda: len(person.shown) == 2)
                scope.cancel()
        await person.until(lambda: len(person.heard("expire")) == 2)
        await site.terminals.remove("ops")
        await person.until(lambda: not client.connected)
        await trio.testing.wait_all_tasks_blocked()
        assert person.errors == []
    assert site.gateway.connections == 0
