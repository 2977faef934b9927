"""Calls over a WebSocket: ids, order, cancellation, batches, and what each method does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from greenroom.actors.gateway import GatewayLimits
from greenroom.actors.gateway.methods import HANDLERS
from greenroom.protocol.forms import Form
from greenroom.protocol.rpc import METHODS
from greenroom.runtime.tools import Tool
from tests.gateway.conftest import ONE_FIELD, Peer, Site, peer, site_with


def request(id: Any, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def notification(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def test_every_documented_method_has_a_handler_and_no_other() -> None:
    assert list(HANDLERS) == list(METHODS)


# -------------------------------------------------------------------- terminals


async def test_terminals_are_listed_with_what_is_pending_and_whether_they_are_operated(
    site: Site, caller: Peer
) -> None:
    site.terminals.add("robot", operator=site.gateway.ref)
    await site.ops.park(Form(ONE_FIELD))
    assert await caller.result("terminal/list") == {
        "terminals": [
            {"name": "ops", "pending": 1, "operated": False},
            {"name": "robot", "pending": 0, "operated": True},
        ]
    }


async def test_an_attached_client_sees_what_is_pending_and_then_each_event_once(site: Site, caller: Peer) -> None:
    first = await site.ops.park(Form(ONE_FIELD))
    attachment = await caller.result("terminal/attach", {"terminal": "ops"})
    assert [form["id"] for form in attachment["pending"]] == [first]
    assert (await caller.result("terminal/attach", {"terminal": "ops"}))["terminal"] == "ops"
    second = await site.ops.park(Form(ONE_FIELD))
    pending = await caller.receive()
    assert pending["method"] == "terminal/pending"
    assert pending["params"]["form"]["id"] == second
    assert pending["params"]["form"]["schema"] == ONE_FIELD
    await site.ops.answer(second, {"x": "hidden from other viewers"})
    assert await caller.receive() == notification("terminal/answered", {"terminal": "ops", "id": second})
    await site.ops.stop(first)
    expired = {"terminal": "ops", "id": first, "reason": "stopped"}
    assert await caller.receive() == notification("terminal/expired", expired)
    third = await site.ops.park(Form(ONE_FIELD))
    assert (await caller.receive())["params"]["form"]["id"] == third
    await site.ops.withdraw(third)
    assert await caller.receive() == notification("terminal/withdrawn", {"terminal": "ops", "id": third})


async def test_a_detached_client_is_told_nothing_more(site: Site, caller: Peer) -> None:
    await caller.result("terminal/attach", {"terminal": "ops"})
    assert await caller.result("terminal/detach", {"terminal": "ops"}) == {"detached": True}
    assert await caller.result("terminal/detach", {"terminal": "ops"}) == {"detached": False}
    await site.ops.park(Form(ONE_FIELD))
    assert await caller.result("terminal/detach", {"terminal": "ops"}) == {"detached": False}
    assert site.terminals.subscriptions == 0


async def test_attaching_to_no_terminal_names_those_there_are(caller: Peer) -> None:
    error = (await caller.call("terminal/attach", {"terminal": "nope"}))["error"]
    assert error["code"] == -32001
    assert error["data"]["code"] == "TARGET"
    assert error["data"]["context"] == {"to": "nope", "known": ["ops"]}
    assert "ops" in error["message"]


async def test_an_attachment_outlives_its_terminal(site: Site, caller: Peer) -> None:
    await caller.result("terminal/attach", {"terminal": "ops"})
    await site.terminals.remove("ops")
    site.terminals.add("ops")
    id = await site.ops.park(Form(ONE_FIELD))
    assert (await caller.receive())["params"]["form"]["id"] == id


async def test_an_ask_is_answered_with_the_submitted_values(site: Site, caller: Peer) -> None:
    async with peer(site.url) as asker:
        await asker.send(request("a", "terminal/ask", {"to": "ops", "schema": ONE_FIELD, "from": "me"}))
        id = await site.the_form()
        (form,) = (await caller.result("terminal/pending"))["pending"]
        assert (form["id"], form["from"], form["to"]) == (id, "me", "ops")
        answer = {"terminal": "ops", "id": id, "values": {"x": "yes"}}
        assert await caller.result("terminal/answer", answer) == {"success": True, "value": {"x": "yes"}}
        assert await asker.receive() == {"jsonrpc": "2.0", "id": "a", "result": {"values": {"x": "yes"}}}
        assert await caller.result("terminal/answer", answer) == {"success": False, "error": {"reason": "unknown"}}


async def test_a_rejected_answer_changes_nothing(site: Site, caller: Peer) -> None:
    schema = {"fields": [{"control": "text", "name": "a"}, {"control": "number", "name": "b"}]}
    id = await site.ops.park(form := Form(schema))
    bad = {"terminal": "ops", "id": id, "values": {"a": "kept?", "b": "no number"}}
    result = await caller.result("terminal/answer", bad)
    assert result["success"] is False
    assert result["error"]["reason"] == "rejected"
    assert [error["field"] for error in result["error"]["errors"]] == ["b"]
    assert form.values == {}
    good = {"terminal": "ops", "id": id, "values": {"b": 5.0}}
    assert await caller.result("terminal/answer", good) == {"success": True, "value": {"b": 5}}


@pytest.mark.parametrize(
    ("timeout", "armed"), [({}, 1), ({"timeout": 60_000}, 1), ({"timeout": None}, 0)], ids=["own", "given", "none"]
)
async def test_a_timeout_is_in_milliseconds_and_null_means_none(
    site: Site, caller: Peer, timeout: dict[str, Any], armed: int
) -> None:
    before = trio.current_time()
    await caller.send(request(1, "terminal/ask", {"to": "ops", "schema": ONE_FIELD, **timeout}))
    await site.the_form()
    snapshot = site.runtime.snapshot()
    assert snapshot.deadlines == armed
    if snapshot.next_due is not None:
        assert snapshot.next_due - before == pytest.approx(60 if timeout else 300, abs=5)


async def test_an_expired_ask_tells_why(caller: Peer) -> None:
    error = (await caller.call("terminal/ask", {"to": "ops", "schema": ONE_FIELD, "timeout": 1}))["error"]
    assert error["code"] == -32002
    assert error["data"]["code"] == "ABANDONED"
    assert error["data"]["context"]["reason"] == "timeout"


async def test_a_schema_with_faults_is_refused_with_each_of_them(site: Site, caller: Peer) -> None:
    schema = {"fields": [{"control": "text", "name": "a", "rule": {"minimum": -1, "step": 2}}] * 2}
    error = (await caller.call("terminal/ask", {"to": "ops", "schema": schema}))["error"]
    assert (error["code"], error["data"]["code"]) == (-32002, "SCHEMA")
    assert len(error["data"]["context"]["problems"]) > 1
    assert site.parked("ops") == []


async def test_a_rule_that_only_a_program_can_mean_is_dropped(site: Site, caller: Peer) -> None:
    schema = {"fields": [{"control": "text", "name": "a", "rule": {"custom": "os.system('true')"}}]}
    await caller.send(request(1, "terminal/ask", {"to": "ops", "schema": schema}))
    await site.the_form()
    assert "custom" not in str((await caller.call("terminal/pending", id=2))["result"])


async def test_a_circle_is_refused_with_its_path_before_anything_is_parked(site: Site, caller: Peer) -> None:
    for name in "abc":
        site.terminals.add(name)
    await caller.send(request(1, "terminal/ask", {"from": "a", "to": "b", "schema": ONE_FIELD}))
    await site.the_form("b")
    await caller.send(request(2, "terminal/ask", {"from": "b", "to": "c", "schema": ONE_FIELD}))
    await site.the_form("c")
    error = (await caller.call("terminal/ask", {"from": "c", "to": "a", "schema": ONE_FIELD}, id=3))["error"]
    assert (error["code"], error["data"]["code"]) == (-32002, "DEADLOCK")
    assert error["data"]["context"]["path"] == ["c", "a", "b", "c"]
    assert "c -> a -> b -> c" in error["message"]
    assert site.parked("a") == []


async def test_a_withdrawn_form_ends_its_ask(site: Site, caller: Peer) -> None:
    async with peer(site.url) as asker:
        await asker.send(request(1, "terminal/ask", {"to": "ops", "schema": ONE_FIELD}))
        params = {"terminal": "ops", "id": await site.the_form()}
        assert await caller.result("terminal/withdraw", params) == {"withdrawn": True}
        assert (await asker.receive())["error"]["data"]["context"]["reason"] == "withdrawn"
        assert await caller.result("terminal/withdraw", params) == {"withdrawn": False}
    error = (await caller.call("terminal/withdraw", {"terminal": "no", "id": "x"}))["error"]
    assert error["data"]["code"] == "TARGET"


async def test_an_answer_to_no_terminal_is_a_result(caller: Peer) -> None:
    params: dict[str, Any] = {"terminal": "no", "id": "x", "values": {}}
    assert await caller.result("terminal/answer", params) == {"success": False, "error": {"reason": "target"}}


# -------------------------------------------------------------------- tools and the tree


async def test_tools_are_listed_and_called(site: Site, caller: Peer) -> None:
    def double(arguments: dict[str, float]) -> float:
        return arguments["n"] * 2

    site.runtime.tools.add(Tool("double", double, description="Doubles n."))
    assert await caller.result("tool/list") == {"tools": [{"name": "double", "description": "Doubles n."}]}
    call = {"name": "double", "arguments": {"n": 2.5}}
    assert await caller.call("tool/call", call, id=7) == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {"id": "7", "name": "double", "success": True, "value": 5},
    }
    failure = await caller.result("tool/call", {"name": "triple"})
    assert failure == {"id": "1", "name": "triple", "success": False, "error": "tool not found: triple"}


async def test_a_result_that_json_cannot_hold_is_a_fault_of_the_server(
    site: Site, caller: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    site.runtime.tools.add(Tool("opaque", object))
    error = (await caller.call("tool/call", {"name": "opaque"}))["error"]
    assert (error["code"], error["data"]["code"]) == (-32603, "INTERNAL")
    correlation = error["data"]["context"]["correlation"]
    assert correlation in error["message"]
    assert "object" not in error["message"]
    assert any(correlation in record.getMessage() for record in caplog.records)
    assert "terminals" in await caller.result("terminal/list")


async def test_the_tree_shows_the_connection_that_asks_for_it(caller: Peer) -> None:
    tree = await caller.result("system/tree")
    paths: list[str] = []
    places = [tree["root"]]
    while places:
        place = places.pop()
        paths.append(place["path"])
        places.extend(place.get("children", ()))
    assert "/gateway/connections/1" in paths
    assert "/terminals/ops" in paths


# -------------------------------------------------------------------- ids, order, cancellation


async def test_answers_come_in_the_order_in_which_calls_end(site: Site, caller: Peer) -> None:
    opened = trio.Event()
    site.runtime.tools.add(Tool("slow", opened.wait))
    await caller.send(request(1, "tool/call", {"name": "slow"}))
    await caller.send(request(2, "terminal/list"))
    assert (await caller.receive())["id"] == 2
    opened.set()
    assert (await caller.receive())["id"] == 1


async def test_a_cancelled_call_is_answered_so_and_its_form_withdrawn(site: Site, caller: Peer) -> None:
    await caller.send(request(1, "terminal/ask", {"to": "ops", "schema": ONE_FIELD}))
    await site.the_form()
    await caller.send(notification("rpc/cancel", {"id": 1}))
    error = (await caller.receive())["error"]
    assert (error["code"], error["data"]["code"]) == (-32800, "CANCELLED")
    assert site.parked("ops") == []
    assert await caller.result("rpc/cancel", {"id": 1}) == {"cancelled": False}


async def test_a_call_that_is_cancelled_before_it_began_never_begins(site: Site, caller: Peer) -> None:
    called: list[object] = []
    site.runtime.tools.add(Tool("note", called.append))
    await caller.send([request(1, "tool/call", {"name": "note"}), notification("rpc/cancel", {"id": 1})])
    (answer,) = await caller.receive()
    assert answer["error"]["code"] == -32800
    assert called == []


async def test_an_id_in_flight_is_refused_and_can_be_used_again_afterwards(site: Site, caller: Peer) -> None:
    await caller.send(request(1, "terminal/ask", {"to": "ops", "schema": ONE_FIELD}))
    await site.the_form()
    refused = await caller.call("terminal/list", id=1)
    assert (refused["id"], refused["error"]["code"], refused["error"]["data"]["code"]) == (1, -32600, "REQUEST")
    assert "terminals" in (await caller.call("terminal/list", id="1"))["result"]
    await caller.send(notification("rpc/cancel", {"id": 1}))
    assert (await caller.receive())["error"]["code"] == -32800
    assert "terminals" in (await caller.call("terminal/list", id=1))["result"]


async def test_a_request_without_an_id_is_carried_out_and_never_answered(site: Site, caller: Peer) -> None:
    await caller.send(notification("terminal/attach", {"terminal": "ops"}))
    await caller.send(notification("terminal/attach", {"terminal": "nope"}))
    await caller.send(notification("no/method", {}))
    await caller.send(notification("terminal/ask", {"to": "ops", "schema": {"fields": 5}}))
    await caller.send(notification("terminal/ask", {"to": "ops", "schema": ONE_FIELD}))
    assert (await caller.receive())["method"] == "terminal/pending"
    assert (await caller.call("terminal/list"))["id"] == 1


async def test_calls_beyond_the_limit_are_refused_until_one_ends() -> None:
    async with site_with(GatewayLimits(calls=2)) as site, peer(site.url) as caller:
        for id in (1, 2):
            await caller.send(request(id, "terminal/ask", {"to": "ops", "schema": ONE_FIELD}))
        error = (await caller.call("terminal/ask", {"to": "ops", "schema": ONE_FIELD}, id=3))["error"]
        assert (error["code"], error["data"]["code"]) == (-32002, "BUSY")
        assert "terminals" in (await caller.call("terminal/list", id=4))["result"]
        await caller.send(notification("rpc/cancel", {"id": 1}))
        assert (await caller.receive())["id"] == 1
        await caller.send(request(3, "terminal/ask", {"to": "ops", "schema": ONE_FIELD}))
        await site.until(lambda: len(site.parked("ops")) == 2)


# -------------------------------------------------------------------- batches


async def test_a_batch_is_answered_in_one_message_when_all_of_it_has_ended(site: Site, caller: Peer) -> None:
    await caller.send(
        [
            request(1, "terminal/ask", {"to": "ops", "schema": ONE_FIELD}),
            request(2, "terminal/list"),
            notification("terminal/attach", {"terminal": "ops"}),
            7,
            request(3, "no/method"),
        ]
    )
    id = await site.the_form()
    assert (await caller.receive())["method"] == "terminal/pending"
    await site.terminals.answer("ops", id, {"x": "y"})
    assert (await caller.receive())["method"] == "terminal/answered"
    answers = {answer["id"]: answer for answer in await caller.receive()}
    assert answers[1]["result"] == {"values": {"x": "y"}}
    assert "terminals" in answers[2]["result"]
    assert answers[None]["error"]["code"] == -32600
    assert answers[3]["error"]["code"] == -32601


async def test_a_batch_of_notifications_is_not_answered(caller: Peer) -> None:
    await caller.send([notification("terminal/attach", {"terminal": "ops"})] * 3)
    assert (await caller.call("terminal/list"))["id"] == 1


@pytest.mark.parametrize("size", [0, 33])
async def test_a_batch_that_is_empty_or_too_long_is_refused_as_one(caller: Peer, size: int) -> None:
    await caller.send([request(n, "terminal/list") for n in range(size)])
    answer = await caller.receive()
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


async def test_a_batch_of_the_most_requests_is_answered(caller: Peer) -> None:
    await caller.send([request(n, "terminal/list") for n in range(32)])
    assert sorted(answer["id"] for answer in await caller.receive()) == list(range(32))
