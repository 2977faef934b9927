"""Clients that lose their connection and come back: nothing is done twice, and nothing is left when they stay away."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.actors.client import Client, Reconnect, connect
from greenroom.actors.gateway import Access, AccessToken, GatewayLimits, SocketLimits
from greenroom.actors.gateway.access import Caller, Usage
from greenroom.actors.gateway.connection import Connection, Front
from greenroom.actors.gateway.visitor import KEPT_BYTES, Visitor
from greenroom.actors.system import Runtime
from greenroom.protocol.access import EVERYTHING
from greenroom.protocol.errors import FormError, RpcError
from greenroom.protocol.forms import Form
from greenroom.protocol.rpc import FormExpired, FormPending
from greenroom.runtime.tools import Tool
from greenroom.runtime.tree import run_tree
from tests.gateway.conftest import ONE_FIELD, Peer, Site, peer, site_with, until

QUICK = Reconnect(first=0.01, longest=0.05)
ID = "a-client-of-the-test"


async def cut(site: Site) -> None:
    """End every connection, as a network does: nobody is told."""
    for ref in list((site.runtime.tree.find("/gateway/connections").children or {}).values()):
        assert isinstance(ref.actor, Connection)
        await ref.actor._stream.kill()


def clients(runtime: Runtime) -> list[str]:
    place = (runtime.tree.root.children or {}).get("clients")
    return list(place.children or ()) if place is not None else []


async def test_an_ask_goes_on_over_a_lost_connection_and_gets_its_answer() -> None:
    async with site_with() as site, connect(site.url, reconnect=QUICK) as client:
        values: list[Any] = []

        async def ask() -> None:
            values.append(await client.ask("ops", ONE_FIELD, from_="agent"))

        site.nursery.start_soon(ask)
        await site.until(lambda: site.ops.count)
        (record,) = site.ops.pending()
        await cut(site)
        assert [pending.id for pending in site.ops.pending()] == [record.id]
        await site.terminals.answer("ops", record.id, {"x": "while it was away"})
        await until(lambda: values)
        assert values == [{"x": "while it was away"}]


async def test_a_client_that_is_just_being_forgotten_comes_again_with_all_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with site_with() as site, connect(site.url, reconnect=QUICK) as client:
        values, refused, welcome = list[Any](), list[str](), Front.visitor

        async def ask() -> None:
            values.append(await client.ask("ops", ONE_FIELD, from_="agent"))

        def refuse_once(front: Front, id: str, caller: Any) -> Any:
            if refused:
                return welcome(front, id, caller)
            refused.append(id)
            raise RpcError("HELLO", "This client is just being forgotten; say hello again.")

        site.nursery.start_soon(ask)
        form = await site.the_form()
        monkeypatch.setattr(Front, "visitor", refuse_once)
        await cut(site)
        await site.terminals.answer("ops", form, {"x": "v"})
        await until(lambda: values)
        assert values == [{"x": "v"}]
        assert len(refused) == 1


async def test_an_ask_that_is_made_without_a_connection_is_sent_when_there_is_one() -> None:
    async with site_with() as site, connect(site.url, reconnect=Reconnect(first=0.3)) as client:
        await cut(site)
        await until(lambda: not client.connected)
        values: list[Any] = []

        async def ask() -> None:
            values.append(await client.ask("ops", ONE_FIELD))

        site.nursery.start_soon(ask)
        await site.terminals.answer("ops", await site.the_form(), {"x": "it was new"})
        await until(lambda: values)
        assert values == [{"x": "it was new"}]


async def test_a_call_may_come_in_one_message_with_the_hello() -> None:
    async with site_with() as site, peer(site.url) as visitor:
        ask = {"to": "ops", "schema": ONE_FIELD, "key": "first"}
        hello = {"jsonrpc": "2.0", "method": "rpc/hello", "params": {"client": ID}}
        await visitor.send([hello, {"jsonrpc": "2.0", "id": 1, "method": "terminal/ask", "params": ask}])
        await site.terminals.answer("ops", await site.the_form(), {"x": "at once"})
        (answer,) = await visitor.receive()
        assert answer["result"] == {"values": {"x": "at once"}}


@pytest.mark.case("reports/clients", 3)
async def test_an_attached_terminal_goes_on_where_it_was() -> None:
    async with site_with() as site, connect(site.url, reconnect=QUICK) as client, client.attach("ops") as terminal:
        site.nursery.start_soon(_ask, site, "ops")
        first = await anext(terminal)
        assert isinstance(first, FormPending)
        await cut(site)
        await site.ops.stop()  # nobody is told of it
        site.nursery.start_soon(_ask, site, "ops")
        with trio.fail_after(5):
            gone = await anext(terminal)
            new = await anext(terminal)
        assert (gone, isinstance(new, FormPending)) == (
            FormExpired(terminal="ops", id=first.form.id, reason="missed"),
            True,
        )
        assert list(terminal.pending) == [record.id for record in site.ops.pending()]
        with trio.move_on_after(0.2):
            raise AssertionError(f"it was told twice: {await anext(terminal)}")


async def _ask(site: Site, to: str) -> None:
    with suppress(FormError):
        await site.runtime.ask(to, ONE_FIELD)


async def test_a_tool_call_runs_once_however_often_the_connection_is_lost() -> None:
    runs: list[int] = []
    go_on = trio.Event()

    async def slow(args: dict[str, Any]) -> str:
        runs.append(1)
        await go_on.wait()
        return "done"

    async with site_with() as site, connect(site.url, reconnect=QUICK) as client:
        site.runtime.tools.add(Tool("slow", slow))
        results: list[Any] = []

        async def call() -> None:
            results.append(await client.call_tool("slow", {}))

        site.nursery.start_soon(call)
        await until(lambda: runs)
        for _ in range(3):
            await cut(site)
            await client.terminals()
        go_on.set()
        await until(lambda: results)
        assert runs == [1]
        assert results[0].value == "done"


async def test_a_client_that_stays_away_loses_its_calls_after_the_grace() -> None:
    async with site_with(GatewayLimits(grace=0.1)) as site:
        async with peer(site.url) as visitor:
            welcome = await visitor.result("rpc/hello", {"client": ID})
            assert (welcome["resumed"], welcome["grace"]) == (False, 100)
            await visitor.send(_ask_frame("k1"))
            await site.until(lambda: site.ops.count)
        assert site.ops.count == 1
        assert clients(site.runtime) == [ID]
        await site.until(lambda: not site.ops.count and not clients(site.runtime))
        assert site.runtime.snapshot().waits == ()


def _ask_frame(key: str | None, *, again: bool = False, id: int = 7, schema: Any = ONE_FIELD) -> dict[str, Any]:
    params: dict[str, Any] = {"to": "ops", "schema": schema}
    if key is not None:
        params |= {"key": key, "again": again}
    return {"jsonrpc": "2.0", "id": id, "method": "terminal/ask", "params": params}


async def _receive(visitor: Peer, id: int) -> Any:
    while (message := await visitor.receive()).get("id") != id:
        pass
    return message


async def test_without_a_key_a_call_ends_with_its_connection_also_after_hello() -> None:
    async with site_with() as site:
        async with peer(site.url) as visitor:
            await visitor.result("rpc/hello", {"client": ID})
            await visitor.send(_ask_frame(None))
            await site.until(lambda: site.ops.count)
        await site.until(lambda: not site.ops.count)


async def test_the_same_key_joins_the_call_and_then_gives_its_outcome() -> None:
    async with site_with() as site, peer(site.url) as one, peer(site.url) as two:
        for visitor in (one, two):
            await visitor.result("rpc/hello", {"client": ID})
        await one.send(_ask_frame("k1"))
        await site.until(lambda: site.ops.count)
        await two.send(_ask_frame("k1", again=True))
        await two.result("terminal/list")
        (record,) = site.ops.pending()
        await site.terminals.answer("ops", record.id, {"x": "v"})
        for visitor in (one, two):
            assert (await _receive(visitor, 7))["result"] == {"values": {"x": "v"}}
        await two.send(_ask_frame("k1", again=True, id=8))
        assert (await _receive(two, 8))["result"] == {"values": {"x": "v"}}
        assert site.ops.count == 0


async def test_a_key_means_one_call_and_an_unknown_outcome_says_so() -> None:
    async with site_with() as site, peer(site.url) as visitor:
        refused = (await visitor.call("terminal/answer", {"terminal": "ops", "id": "x", "values": {}, "key": "k"}))[
            "error"
        ]
        assert refused["data"]["code"] == "HELLO"
        await visitor.result("rpc/hello", {"client": ID})
        await visitor.send(_ask_frame("lost", again=True))
        assert (await _receive(visitor, 7))["error"]["data"]["code"] == "OUTCOME"
        assert site.ops.count == 0
        await visitor.send(_ask_frame("k1"))
        await site.until(lambda: site.ops.count)
        other = {"fields": [{"control": "text", "name": "other"}]}
        await visitor.send(_ask_frame("k1", id=8, schema=other))
        assert (await _receive(visitor, 8))["error"]["data"]["code"] == "KEY"


async def test_cancelling_a_keyed_call_withdraws_its_form_for_everybody() -> None:
    async with site_with() as site, peer(site.url) as visitor:
        await visitor.result("rpc/hello", {"client": ID})
        await visitor.send(_ask_frame("k1"))
        await site.until(lambda: site.ops.count)
        await visitor.send({"jsonrpc": "2.0", "method": "rpc/cancel", "params": {"id": 7}})
        assert (await _receive(visitor, 7))["error"]["code"] == -32800
        await site.until(lambda: not site.ops.count)


async def test_an_ask_that_is_cancelled_while_away_is_withdrawn_when_the_client_is_back() -> None:
    async with site_with() as site, connect(site.url, reconnect=Reconnect(first=0.3)) as client:
        scope = trio.CancelScope()

        async def ask() -> None:
            with scope:
                await client.ask("ops", ONE_FIELD)

        site.nursery.start_soon(ask)
        await site.until(lambda: site.ops.count)
        await cut(site)
        await until(lambda: not client.connected)
        scope.cancel()
        await trio.sleep(0.05)
        assert site.ops.count == 1
        await site.until(lambda: not site.ops.count)


async def test_nobody_comes_in_another_tokens_name() -> None:
    tokens = [AccessToken.of(name, name * 20, EVERYTHING) for name in ("ada", "bob")]
    async with site_with(access=Access(tokens)) as site:
        async with connect(site.url, token="ada" * 20, reconnect=False) as ada:
            await ada.call("rpc/hello", {"client": ID}, dict[str, Any])
            async with connect(site.url, token="bob" * 20, reconnect=False) as bob:
                with pytest.raises(RpcError) as refused:
                    await bob.call("rpc/hello", {"client": ID}, dict[str, Any])
        assert refused.value.code == "HELLO"


async def test_a_result_that_is_no_json_fails_its_call_and_nothing_else() -> None:
    async with site_with() as site, connect(site.url, reconnect=QUICK) as client, trio.open_nursery() as nursery:
        site.runtime.tools.add(Tool("odd", lambda _: object()))
        nursery.start_soon(client.ask, "ops", ONE_FIELD)
        form = await site.the_form()
        for _ in range(2):
            with trio.fail_after(5), pytest.raises(RpcError) as failed:
                await client.call_tool("odd", {})
            assert failed.value.code == "INTERNAL"
        assert site.parked("ops") == [form]
        await site.terminals.answer("ops", form, {"x": "v"})


async def test_one_is_not_true_for_a_key() -> None:
    async with site_with() as site, peer(site.url) as visitor:
        await visitor.result("rpc/hello", {"client": ID})
        answer = {"terminal": "ops", "id": "x", "key": "k"}
        assert not (await visitor.result("terminal/answer", {**answer, "values": {"x": True}}))["success"]
        refused = await visitor.call("terminal/answer", {**answer, "values": {"x": 1}})
        assert refused["error"]["data"]["code"] == "KEY"


async def test_a_client_has_so_many_calls_under_way_over_all_of_its_connections() -> None:
    async with site_with(GatewayLimits(calls=3)) as site:
        for round in range(2):
            async with peer(site.url) as visitor:
                await visitor.result("rpc/hello", {"client": ID})
                for number in range(2):
                    await visitor.send(_ask_frame(f"k{round}{number}", id=10 + number))
                await visitor.result("terminal/list") if round == 0 else None
                if round == 1:
                    refused = await _receive(visitor, 11)
                    assert refused["error"]["data"]["code"] == "BUSY"
        assert site.ops.count == 3


async def test_outcomes_are_kept_in_a_bounded_number_of_bytes_the_latest_in_any_case() -> None:
    async with site_with() as site, peer(site.url) as visitor:
        site.runtime.tools.add(Tool("long", lambda args: "x" * args["size"]))
        await visitor.result("rpc/hello", {"client": ID})

        async def call(key: str, size: int, **more: Any) -> Any:
            return await visitor.call("tool/call", {"name": "long", "arguments": {"size": size}, "key": key, **more})

        small = KEPT_BYTES // 4
        for key in ("a", "b", "c", "d"):
            await call(key, small)
        assert "result" in await call("d", small, again=True)
        assert (await call("a", small, again=True))["error"]["data"]["code"] == "OUTCOME"
        await call("huge", KEPT_BYTES + 1)
        assert "result" in await call("huge", KEPT_BYTES + 1, again=True)
        assert (await call("d", small, again=True))["error"]["data"]["code"] == "OUTCOME"


class Came(NamedTuple):
    """As much of a session as a visitor looks at."""

    caller: Caller


@pytest.mark.parametrize("seed", range(10))
async def test_a_client_that_comes_back_in_the_last_moment_stays(seed: int, autojump_clock: MockClock) -> None:
    async with run_tree() as tree:
        ada = Caller("ada", EVERYTHING, None, Usage())
        visitor = Visitor(ada, Access(), GatewayLimits(grace=1.0))
        ref = tree.spawn(visitor, "client")
        await trio.testing.wait_all_tasks_blocked()
        session: Any = Came(ada)
        visitor.come(session)
        visitor.leave(session, for_good=False)
        await trio.sleep(1.0)  # awake in the same step as what ends it, before or after it
        if ref.alive:
            visitor.come(session)
            await trio.testing.wait_all_tasks_blocked()
            assert ref.alive


@pytest.mark.parametrize("id", ["short", "with space in it", "x" * 65, "a/b/c/d/e"])
async def test_a_client_id_is_a_word_of_its_own(site: Site, caller: Peer, id: str) -> None:
    answer = await caller.call("rpc/hello", {"client": id})
    assert (answer["error"]["code"], answer["error"]["data"]["context"]["field"]) == (-32602, "client")


async def test_a_client_gives_up_when_it_was_told_to_and_everything_that_waits_fails() -> None:
    async with site_with() as site:
        rule = Reconnect(first=0.01, longest=0.01, give_up_after=0.05)
        async with connect(site.url, reconnect=rule) as client:
            await site.gateway.stop()
            with trio.fail_after(5), pytest.raises(RpcError) as ended:
                await _until_refused(client)
            assert ended.value.code == "CLOSED"


async def _until_refused(client: Client) -> None:
    while True:
        await client.terminals()


async def test_a_server_that_comes_back_at_the_same_port_is_found_again() -> None:
    async with site_with() as site, connect(site.url, reconnect=QUICK) as client, client.attach("ops") as terminal:
        port = site.gateway.port
        await site.gateway.stop()
        site.nursery.start_soon(_ask, site, "ops")
        await site.until(lambda: site.ops.count)
        await site.runtime.serve(port=port, name="gateway-2")
        with trio.fail_after(5):
            assert isinstance(await anext(terminal), FormPending)


class Line:
    """Stands between a client and the gateway, and can fall silent in both directions while both ends stay open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._silent = trio.Event()
        self.begun = 0
        """How many connections there have been."""

    async def listen(self, *, task_status: trio.TaskStatus[int]) -> None:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        task_status.started(listeners[0].socket.getsockname()[1])
        await trio.serve_listeners(self._serve, listeners)

    async def _serve(self, near: trio.SocketStream) -> None:
        silent = self._silent
        self.begun += 1
        far = await trio.open_tcp_stream("127.0.0.1", self._port)
        async with near, far, trio.open_nursery() as nursery:
            nursery.start_soon(self._forward, near, far, silent)
            nursery.start_soon(self._forward, far, near, silent)

    async def _forward(self, here: trio.SocketStream, there: trio.SocketStream, silent: trio.Event) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while data := await here.receive_some():
                if not silent.is_set():
                    await there.send_all(data)

    def fall_silent(self) -> None:
        """For the connections there are; later ones are forwarded."""
        self._silent.set()
        self._silent = trio.Event()


@pytest.mark.case("reports/clients", 2)
async def test_both_ends_of_a_silent_line_give_up_within_two_heartbeats_and_the_client_comes_back() -> None:
    quick = SocketLimits(ping_interval=0.2, ping_timeout=0.2, close_timeout=0.1)
    async with site_with(GatewayLimits(socket=quick)) as site:
        line = Line(site.gateway.port)
        port = await site.nursery.start(line.listen)
        async with connect(f"ws://127.0.0.1:{port}/rpc", reconnect=QUICK, limits=quick) as client:
            async with client.attach("ops") as terminal:
                assert site.terminals.subscriptions == 1
                before = trio.current_time()
                line.fall_silent()
                await until(lambda: line.begun == 2 and client.connected and site.gateway.connections == 1)
                assert trio.current_time() - before < 5
                site.nursery.start_soon(_ask, site, "ops")
                with trio.fail_after(5):
                    assert isinstance(await anext(terminal), FormPending)
                assert site.terminals.subscriptions == 1


# -------------------------------------------------------------------- going for good


async def test_a_client_that_is_closed_is_forgotten_at_once_and_its_forms_with_it() -> None:
    async with site_with() as site:
        async with connect(site.url) as client, trio.open_nursery() as nursery:
            nursery.start_soon(client.ask, "ops", ONE_FIELD)
            await site.the_form()
            assert len(clients(site.runtime)) == 1
            nursery.cancel_scope.cancel()
        await site.until(lambda: not site.ops.count and not clients(site.runtime))


async def test_who_says_goodbye_ends_with_the_last_of_its_connections() -> None:
    async with site_with() as site:
        async with peer(site.url) as one:
            assert await one.result("rpc/bye") == {"known": False}
            await one.result("rpc/hello", {"client": ID})
            async with peer(site.url) as two:
                await two.result("rpc/hello", {"client": ID})
                await two.send(_ask_frame("k1"))
                await site.the_form()
                assert await two.result("rpc/bye") == {"known": True}
                assert site.ops.count == 1
            await site.until(lambda: site.gateway.connections == 1)
            assert clients(site.runtime) == [ID]
            assert await one.result("rpc/bye") == {"known": True}
        await site.until(lambda: not site.ops.count and not clients(site.runtime))


# -------------------------------------------------------------------- calls that got lost on their way


async def test_a_call_that_never_arrived_is_carried_out_when_the_client_is_back() -> None:
    quick = SocketLimits(ping_interval=0.2, ping_timeout=0.2, close_timeout=0.1)
    async with site_with(GatewayLimits(socket=quick)) as site:
        line = Line(site.gateway.port)
        port = await site.nursery.start(line.listen)
        async with connect(f"ws://127.0.0.1:{port}/rpc", reconnect=QUICK, limits=quick) as client:
            line.fall_silent()
            values: list[Any] = []

            async def ask() -> None:
                values.append(await client.ask("ops", ONE_FIELD))

            site.nursery.start_soon(ask)
            await site.terminals.answer("ops", await site.the_form(), {"x": "it came through"})
            await until(lambda: values)
            assert values == [{"x": "it came through"}]


async def test_a_call_of_another_visit_or_of_a_forgotten_one_is_not_carried_out_again() -> None:
    async with site_with(GatewayLimits(kept_for=0.05)) as site, peer(site.url) as visitor:
        visit = (await visitor.result("rpc/hello", {"client": ID}))["visit"]

        async def call(key: str, visit: str) -> Any:
            params = {"terminal": "ops", "id": "x", "values": {}, "key": key, "again": True, "visit": visit}
            return await visitor.call("terminal/answer", params)

        assert (await call("one", "another visit"))["error"]["data"]["code"] == "OUTCOME"
        assert "result" in await call("two", visit)
        await trio.sleep(0.1)  # what was kept of it is forgotten by then
        assert (await call("two", visit))["error"]["data"]["code"] == "OUTCOME"


# -------------------------------------------------------------------- messages that are too large


async def test_a_call_that_is_larger_than_the_gateway_takes_fails_alone() -> None:
    async with site_with() as site, connect(site.url, reconnect=QUICK) as client:
        label = "y" * SocketLimits().message_size
        with pytest.raises(RpcError) as refused:
            await client.ask("ops", {"fields": [{"control": "text", "name": "x", "label": label}]})
        assert (refused.value.code, refused.value.context["most"]) == ("PARAMS", SocketLimits().message_size)
        assert await client.terminals()


async def test_a_client_that_is_sent_more_than_it_takes_ends_and_says_why() -> None:
    large = {"fields": [{"control": "text", "name": "x", "label": "y" * 20_000}]}
    limits = SocketLimits(message_size=10_000, close_timeout=0.1)
    async with site_with() as site, connect(site.url, reconnect=QUICK, limits=limits) as client:
        await client.terminals()
        await site.ops.park(Form(large))
        for _ in range(2):
            with trio.fail_after(5), pytest.raises(RpcError) as ended:
                await client.pending("ops")
            assert (ended.value.code, ended.value.context["code"]) == ("CLOSED", 1009)
            assert "10000 bytes" in ended.value.message
        assert not client.open
