"""The Python client: typed calls, attached terminals, errors as they were raised, and an end that fails what waits."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from math import inf, nan
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Request, TextMessage

from greenroom.actors.client import AttachedTerminal, Client, SocketLimits, connect
from greenroom.actors.client.connecting import LIMITS
from greenroom.actors.client.dialing import parse_url
from greenroom.actors.client.handshake import dial
from greenroom.actors.client.stream import GuardedStream
from greenroom.protocol.errors import ConfigError, FormError, RpcError, TerminalDeadlock, TerminalError
from greenroom.protocol.forms import Form, FormSchema, parse_form
from greenroom.protocol.rpc import FormAnswered, FormExpired, FormPending, FormWithdrawn, TerminalList
from greenroom.protocol.terminals import AnswerFailure, AnswerSuccess
from greenroom.protocol.tools import ToolFailure, ToolSuccess
from greenroom.runtime.tools import Tool
from tests.gateway.conftest import ONE_FIELD, Site


@pytest.fixture
async def client(site: Site) -> AsyncGenerator[Client, None]:
    async with connect(site.url, reconnect=False) as client:
        yield client


# -------------------------------------------------------------------- calls


async def test_terminals_tools_and_the_tree_are_read_as_structs(site: Site, client: Client) -> None:
    site.runtime.tools.add(Tool("double", lambda arguments: arguments["n"] * 2))
    (info,) = await client.terminals()
    assert (info.name, info.pending, info.operated) == ("ops", 0, False)
    assert [tool.name for tool in await client.tools()] == ["double"]
    assert await client.call_tool("double", {"n": 1.5}) == ToolSuccess(id="3", name="double", value=3)
    assert await client.call_tool("triple", {}) == ToolFailure(id="4", name="triple", error="tool not found: triple")
    assert {"/terminals", "/gateway"} <= {child.path for child in (await client.tree()).root.children}


async def test_an_ask_gives_the_values_and_an_answer_says_how_it_went(site: Site, client: Client) -> None:
    schema = parse_form(ONE_FIELD)
    assert isinstance(schema, FormSchema)
    asked: list[dict[str, Any]] = []

    async def ask() -> None:
        asked.append(await client.ask("ops", schema, from_="me", timeout=60))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        id = await site.the_form()
        (form,) = await client.pending("ops")
        assert (form.id, form.from_, form.to, form.schema) == (id, "me", "ops", schema)
        assert await client.pending() == (form,)
        refused = await client.answer("ops", id, {})
        assert isinstance(refused, AnswerFailure)
        assert refused.error.reason == "rejected"
        assert await client.answer("ops", id, {"x": "y"}) == AnswerSuccess(value={"x": "y"})
    assert asked == [{"x": "y"}]


async def test_calls_of_many_tasks_overlap(site: Site, client: Client) -> None:
    done: list[int] = []

    async def ask(number: int) -> None:
        assert await client.ask("ops", ONE_FIELD, from_=str(number)) == {"x": str(number)}
        done.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(ask, number)
        await site.until(lambda: len(site.parked("ops")) == 50)
        for form in reversed(await client.pending("ops")):
            assert isinstance(form.from_, str)
            await client.answer("ops", form.id, {"x": form.from_})
    assert sorted(done) == list(range(50))


async def test_any_method_can_be_called_by_name(client: Client) -> None:
    assert (await client.call("terminal/list", {}, TerminalList)).terminals[0].name == "ops"
    assert "terminals" in await client.call("terminal/list", {}, dict[str, Any])
    with pytest.raises(RpcError, match="another shape") as raised:
        await client.call("terminal/list", {}, list[int])
    assert raised.value.code == "RESULT"


async def test_what_is_no_json_is_refused_before_it_is_sent(client: Client) -> None:
    for params in ({"terminal": object()}, {"terminal": "\ud800"}):
        with pytest.raises(RpcError) as raised:
            await client.call("terminal/attach", params, dict)
        assert raised.value.code == "PARAMS"
    assert len(await client.terminals()) == 1


@pytest.mark.parametrize("timeout", [-1, nan])
async def test_a_timeout_that_is_none_is_refused_at_once(client: Client, timeout: float) -> None:
    with pytest.raises(ValueError, match="from 0 on"):
        await client.ask("ops", ONE_FIELD, timeout=timeout)


@pytest.mark.parametrize(("timeout", "armed"), [(None, 0), (inf, 0), (30, 1), (msgspec.UNSET, 1)])
async def test_an_ask_may_wait_as_long_as_it_says(site: Site, client: Client, timeout: Any, armed: int) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: client.ask("ops", ONE_FIELD, timeout=timeout))
        await site.the_form()
        assert site.runtime.snapshot().deadlines == armed
        nursery.cancel_scope.cancel()


# -------------------------------------------------------------------- errors


async def test_errors_arrive_as_they_were_raised(site: Site, client: Client) -> None:
    with pytest.raises(TerminalError) as target:
        await client.ask("nope", ONE_FIELD)
    assert (target.value.code, target.value.context) == ("TARGET", {"to": "nope", "known": ["ops"]})
    with pytest.raises(TerminalDeadlock) as circle:
        await client.ask("ops", ONE_FIELD, from_="ops")
    assert circle.value.path == ["ops", "ops"]
    with pytest.raises(FormError) as schema:
        await client.ask("ops", {"fields": [{"control": "text", "name": ""}]})
    assert (schema.value.code, len(schema.value.context["problems"])) == ("SCHEMA", 1)
    with pytest.raises(FormError) as abandoned:
        await client.ask("ops", ONE_FIELD, timeout=0.001)
    assert (abandoned.value.code, abandoned.value.context["reason"]) == ("ABANDONED", "timeout")
    with pytest.raises(RpcError) as method:
        await client.call("terminal/lits", {}, dict)
    assert (method.value.code, method.value.context["nearest"]) == ("METHOD", "terminal/list")
    with pytest.raises(RpcError) as params:
        await client.call("terminal/attach", {"name": "ops"}, dict)
    assert (params.value.code, params.value.context["field"]) == ("PARAMS", "name")
    site.terminals.add("full", cap=0)
    with pytest.raises(TerminalError) as limit:
        await client.ask("full", ONE_FIELD)
    assert limit.value.code == "LIMIT"


async def test_a_cancelled_ask_withdraws_its_form(site: Site, client: Client) -> None:
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: client.ask("ops", ONE_FIELD))
            await site.the_form()
            scope.cancel()
    await site.until(lambda: site.parked("ops") == [])
    assert len(await client.terminals()) == 1


# -------------------------------------------------------------------- attached terminals


async def end_of(terminal: AttachedTerminal) -> RpcError:
    """Take events until there are no more; why there are none."""
    try:
        async for _ in terminal:
            pass
    except RpcError as error:
        return error
    raise AssertionError("it ended without a reason")


async def test_an_attached_terminal_shows_what_is_pending_and_then_every_event(site: Site, client: Client) -> None:
    first = await site.ops.park(Form(ONE_FIELD))
    async with client.attach("ops") as terminal:
        assert list(terminal.pending) == [first]
        second = await site.ops.park(Form(ONE_FIELD))
        event = await terminal.__anext__()
        assert isinstance(event, FormPending)
        assert list(terminal.pending) == [first, second]
        assert await terminal.answer(first, {"x": "y"}) == AnswerSuccess(value={"x": "y"})
        assert await terminal.__anext__() == FormAnswered(terminal="ops", id=first)
        await site.ops.stop(second)
        assert await terminal.__anext__() == FormExpired(terminal="ops", id=second, reason="stopped")
        third = await site.ops.park(Form(ONE_FIELD))
        assert isinstance(await terminal.__anext__(), FormPending)
        assert await terminal.withdraw(third)
        assert await terminal.__anext__() == FormWithdrawn(terminal="ops", id=third)
        assert terminal.pending == {}
    await client.terminals()
    assert site.terminals.subscriptions == 0


async def test_a_form_asked_before_or_after_attaching_is_shown_once_and_dropped_by_all(
    site: Site, client: Client
) -> None:
    early = await site.ops.park(Form(ONE_FIELD))
    async with connect(site.url, reconnect=False) as other, client.attach("ops") as one, other.attach("ops") as two:
        late = await site.ops.park(Form(ONE_FIELD))
        for terminal in (one, two):
            event = await terminal.__anext__()
            assert isinstance(event, FormPending)
            assert event.form.id == late
            assert list(terminal.pending) == [early, late]
        await one.answer(early, {"x": "1"})
        for terminal in (one, two):
            assert await terminal.__anext__() == FormAnswered(terminal="ops", id=early)
            assert list(terminal.pending) == [late]


async def test_one_terminal_may_be_attached_to_twice_and_is_detached_from_at_the_end(
    site: Site, client: Client
) -> None:
    async with client.attach("ops") as outer:
        id = await site.ops.park(Form(ONE_FIELD))
        async with client.attach("ops") as inner:
            assert list(inner.pending) == [id]
            assert site.terminals.subscriptions == 1
        await client.terminals()
        assert site.terminals.subscriptions == 1
        await site.ops.stop()
        assert isinstance(await outer.__anext__(), FormPending)
        assert isinstance(await outer.__anext__(), FormExpired)
    await client.terminals()
    assert site.terminals.subscriptions == 0


async def test_attaching_to_no_terminal_names_those_there_are(site: Site, client: Client) -> None:
    with pytest.raises(TerminalError, match="ops"):
        async with client.attach("nope"):
            pass
    assert site.terminals.subscriptions == 0


async def test_events_that_nobody_takes_end_the_iteration_and_pending_stays_right(site: Site, client: Client) -> None:
    async with client.attach("ops", buffer=3) as terminal:
        ids = [await site.ops.park(Form(ONE_FIELD)) for _ in range(10)]
        await client.terminals()
        assert list(terminal.pending) == ids
        taken = [await terminal.__anext__() for _ in range(3)]
        assert [event.form.id for event in taken if isinstance(event, FormPending)] == ids[:3]
        with pytest.raises(RpcError, match="buffer") as raised:
            await terminal.__anext__()
        assert raised.value.code == "OVERFLOW"
        await site.ops.stop()
        await client.terminals()
        assert terminal.pending == {}


async def test_leaving_the_block_ends_an_iteration_of_another_task_quietly(site: Site, client: Client) -> None:
    events: list[object] = []

    async def collect(terminal: Any) -> None:
        events.extend([event async for event in terminal])

    async with trio.open_nursery() as nursery:
        async with client.attach("ops") as terminal:
            nursery.start_soon(collect, terminal)
            await site.ops.park(Form(ONE_FIELD))
            await client.terminals()
    assert len(events) == 1


async def test_text_with_every_kind_of_line_end_comes_through_unchanged(site: Site, client: Client) -> None:
    odd = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\r\nh\ri\n"
    async with client.attach("ops") as terminal:
        async with trio.open_nursery() as nursery:
            answers: list[dict[str, Any]] = []

            async def ask() -> None:
                schema = {"fields": [{"control": "editor", "name": "x", "label": odd}]}
                answers.append(await client.ask("ops", schema))

            nursery.start_soon(ask)
            event = await terminal.__anext__()
            assert isinstance(event, FormPending)
            assert event.form.schema.fields[0].label == odd
            await terminal.answer(event.form.id, {"x": odd})
        assert answers == [{"x": odd}]


@pytest.mark.parametrize("name", ["a/b", "a?x=1", "a#b", "..", "50%", "{other}", "ü😀", " ", "terminal/list"])
async def test_a_terminal_may_have_any_name(site: Site, client: Client, name: str) -> None:
    site.terminals.add(name)
    async with client.attach(name) as terminal:
        await site.ops.park(Form(ONE_FIELD))
        ticket = site.terminals.terminal(name)
        assert ticket is not None
        id = await ticket.park(Form(ONE_FIELD))
        event = await terminal.__anext__()
        assert isinstance(event, FormPending)
        assert (event.terminal, event.form.id) == (name, id)
        assert isinstance(await terminal.answer(id, {"x": "y"}), AnswerSuccess)


# -------------------------------------------------------------------- connecting and ending


@pytest.mark.parametrize(
    ("url", "host", "port", "resource", "authority"),
    [
        ("ws://127.0.0.1:80/rpc", "127.0.0.1", 80, "/rpc", "127.0.0.1"),
        ("http://localhost:8080", "localhost", 8080, "/rpc", "localhost:8080"),
        ("http://localhost:8080/", "localhost", 8080, "/rpc", "localhost:8080"),
        ("wss://greenroom.example", "greenroom.example", 443, "/rpc", "greenroom.example"),
        ("https://greenroom.example:8443/x?y=1", "greenroom.example", 8443, "/x?y=1", "greenroom.example:8443"),
        ("ws://[::1]:9/rpc", "::1", 9, "/rpc", "[::1]:9"),
    ],
)
def test_a_url_says_where_a_gateway_is(url: str, host: str, port: int, resource: str, authority: str) -> None:
    address = parse_url(url)
    assert (address.host, address.port, address.resource, address.authority) == (host, port, resource, authority)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:80",
        "ftp://a",
        "ws://",
        "ws://a:x",
        "ws://a:99999",
        "ws://me:hunter2@a",
        "ws://a/rpc#x",
        "ws://[::1",
    ],
)
async def test_a_url_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError) as raised:
        async with connect(url, reconnect=False):
            pass
    assert raised.value.code == "URL"
    assert "hunter2" not in str(raised.value)


async def test_where_no_gateway_is_nothing_is_left_and_the_reason_is_told(site: Site) -> None:
    listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    with pytest.raises(RpcError, match="no gateway") as raised:
        async with connect(f"ws://127.0.0.1:{port}/rpc"):
            pass
    assert raised.value.code == "CONNECT"
    with pytest.raises(RpcError, match="404") as raised:
        async with connect(site.url.replace("/rpc", "/nothing")):
            pass
    assert raised.value.context["status"] == 404


async def test_a_server_that_does_not_shake_hands_is_given_up(nursery: trio.Nursery) -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]

    async def say_nothing(stream: trio.SocketStream) -> None:
        async for _ in stream:
            pass

    nursery.start_soon(trio.serve_listeners, say_nothing, listeners)
    with pytest.raises(RpcError, match="no gateway"):
        async with connect(f"ws://127.0.0.1:{port}", limits=SocketLimits(handshake_timeout=0.05)):
            pass


async def test_an_error_in_the_block_comes_out_as_it_is(site: Site) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with connect(site.url, reconnect=False):
            raise KeyError("mine")
    await site.until_nothing_is_left()


async def test_leaving_the_block_ends_calls_of_other_tasks_and_withdraws_their_forms(site: Site) -> None:
    async def ask(client: Client) -> None:
        with pytest.raises(RpcError, match="has ended"):
            await client.ask("ops", ONE_FIELD)

    async with trio.open_nursery() as nursery:
        async with connect(site.url, reconnect=False) as client:
            nursery.start_soon(ask, client)
            await site.the_form()
    assert not client.open
    await site.until_nothing_is_left()


async def test_the_end_of_the_server_fails_whatever_waits(site: Site, client: Client) -> None:
    async def ask() -> None:
        with pytest.raises(RpcError) as raised:
            await client.ask("ops", ONE_FIELD)
        assert raised.value.code == "SHUTDOWN"

    async def watch() -> None:
        async with client.attach("ops") as terminal:
            attached.set()
            assert (await end_of(terminal)).code == "CLOSED"

    attached = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        nursery.start_soon(watch)
        await attached.wait()
        await site.the_form()
        await site.gateway.stop()
    with pytest.raises(RpcError) as raised:
        await client.terminals()
    assert (raised.value.code, raised.value.context) == ("CLOSED", {"code": 1001, "reason": "the server stops"})


# -------------------------------------------------------------------- a server that a test plays


class Played:
    """The server's end of a connection, played by a test."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.protocol = WSConnection(ConnectionType.SERVER)

    async def take(self, kind: type[Any]) -> Any:
        while True:
            for event in self.protocol.events():
                if isinstance(event, kind):
                    return event
            self.protocol.receive_data(bytes(await self.stream.receive_some()))

    async def send(self, text: str) -> None:
        await self.stream.send_all(self.protocol.send(TextMessage(data=text)))


@asynccontextmanager
async def played() -> AsyncGenerator[tuple[Client, Played], None]:
    """A client over streams in memory, so that the clock can be moved."""
    ours, theirs = trio.testing.memory_stream_pair()
    server = Played(theirs)

    async def accept() -> None:
        await server.take(Request)
        await theirs.send_all(server.protocol.send(AcceptConnection()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        stream = GuardedStream(ours, send_timeout=LIMITS.send_timeout)
        client = Client(await dial(nursery, stream, "localhost", "/rpc", LIMITS))
        nursery.start_soon(client.run)
        yield client, server
        client.close()


async def test_a_server_that_answers_no_ping_is_given_up_within_two_periods(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with played() as (client, _):
        with pytest.raises(RpcError, match="ping") as raised:
            await client.terminals()
        assert trio.current_time() == pytest.approx(40)
        assert raised.value.code == "CLOSED"


@pytest.mark.parametrize("text", ["", "no JSON", '{"id":{}}', "5"])
async def test_a_server_that_speaks_something_else_is_left(autojump_clock: trio.testing.MockClock, text: str) -> None:
    async with played() as (client, server):
        await server.send(text)
        closing = await server.take(CloseConnection)
        assert closing.code == 1002
        with pytest.raises(RpcError, match="1002"):
            await client.terminals()


async def test_what_a_later_server_may_say_is_passed_over(autojump_clock: trio.testing.MockClock) -> None:
    async with played() as (client, server):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: client.terminals())
            for text in (
                '{"jsonrpc":"2.0","method":"terminal/renamed","params":{"to":"x"}}',
                '{"jsonrpc":"2.0","method":"terminal/answered","params":{"id":5}}',
                '{"jsonrpc":"2.0","id":999,"result":{}}',
                '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}',
                '[{"jsonrpc":"2.0","id":1,"result":{"terminals":[],"more":1}}]',
            ):
                await server.send(text)
        assert client.open


async def test_a_cancelled_call_is_cancelled_at_the_server(autojump_clock: trio.testing.MockClock) -> None:
    async with played() as (client, server):
        with trio.move_on_after(1):
            await client.ask("ops", ONE_FIELD)
        asked = msgspec.json.decode((await server.take(TextMessage)).data)
        cancelled = msgspec.json.decode((await server.take(TextMessage)).data)
        assert cancelled == {"jsonrpc": "2.0", "method": "rpc/cancel", "params": {"id": asked["id"]}}
        await server.send(f'{{"jsonrpc":"2.0","id":{asked["id"]},"error":{{"code":-32800,"message":"cancelled"}}}}')
        await trio.testing.wait_all_tasks_blocked()
        assert client.open
