"""Several clients at one terminal: one answer counts, secrets stay between two, and a frame is encoded once."""

from __future__ import annotations

import json
import logging
from contextlib import AsyncExitStack
from typing import Any

import pytest
import trio

from greenroom.actors.gateway import attachments
from greenroom.protocol.forms import Form
from tests.gateway.conftest import ONE_FIELD, Peer, Site, peer

SECRET: dict[str, Any] = {
    "fields": [
        {"control": "password", "name": "word", "rule": {"minimum": 5}},
        {"control": "text", "name": "note", "rule": {"maximum": 5}},
    ]
}


def answer(id: str, values: dict[str, Any], number: int = 1) -> dict[str, Any]:
    params = {"terminal": "ops", "id": id, "values": values}
    return {"jsonrpc": "2.0", "id": number, "method": "terminal/answer", "params": params}


async def test_of_two_answers_in_the_same_moment_one_counts_and_the_asker_gets_it(site: Site) -> None:
    async with peer(site.url) as one, peer(site.url) as two, peer(site.url) as asker, peer(site.url) as viewer:
        await viewer.result("terminal/attach", {"terminal": "ops"})
        for _ in range(200):
            asking = {"to": "ops", "schema": ONE_FIELD}
            await asker.send({"jsonrpc": "2.0", "id": 1, "method": "terminal/ask", "params": asking})
            id = (await viewer.receive())["params"]["form"]["id"]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(one.send, answer(id, {"x": "one"}))
                nursery.start_soon(two.send, answer(id, {"x": "two"}))
            results = [(await each.receive())["result"] for each in (one, two)]
            (winner,) = [result for result in results if result["success"]]
            (loser,) = [result for result in results if not result["success"]]
            assert loser["error"] == {"reason": "unknown"}
            assert (await asker.receive())["result"]["values"] == winner["value"]
            assert (await viewer.receive())["method"] == "terminal/answered"


async def test_the_same_answer_twice_in_a_row_counts_once(site: Site, caller: Peer) -> None:
    id = await site.ops.park(Form(ONE_FIELD))
    await caller.send(answer(id, {"x": "y"}, 1))
    await caller.send(answer(id, {"x": "y"}, 2))
    results = [(await caller.receive())["result"]["success"] for _ in range(2)]
    assert sorted(results) == [False, True]


async def test_a_rejected_answer_of_one_client_leaves_the_other_free(site: Site, caller: Peer) -> None:
    schema = {"fields": [{"control": "text", "name": "a"}, {"control": "number", "name": "b"}]}
    id = await site.ops.park(Form(schema))
    async with peer(site.url) as other:
        await caller.send(answer(id, {"a": "from one", "b": "no number"}))
        assert (await caller.receive())["result"]["error"]["reason"] == "rejected"
        await other.send(answer(id, {"b": 1}))
        assert (await other.receive())["result"] == {"success": True, "value": {"b": 1}}


async def test_a_password_reaches_its_asker_and_the_one_who_typed_it_and_nobody_else(
    site: Site, caller: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with peer(site.url) as asker, peer(site.url) as viewer:
        await viewer.result("terminal/attach", {"terminal": "ops"})
        params = {"to": "ops", "schema": SECRET}
        await asker.send({"jsonrpc": "2.0", "id": 1, "method": "terminal/ask", "params": params})
        id = await site.the_form()
        await caller.send(answer(id, {"word": "hunter2", "note": "too long a note"}))
        rejected = await caller.receive()
        assert rejected["result"]["error"]["reason"] == "rejected"
        assert "hunter2" not in json.dumps(rejected)
        await caller.send(answer(id, {"word": "hunter2", "note": "ok", "extra": "hunter2"}))
        assert "hunter2" not in json.dumps(await caller.receive())
        await caller.send({"jsonrpc": "2.0", "id": 1, "method": "terminal/answer", "params": ["hunter2"]})
        assert "hunter2" not in json.dumps(await caller.receive())
        await caller.send('{"jsonrpc":"2.0","id":1,"method":"terminal/answer","params":{"values":"hunter2"')
        assert "hunter2" not in json.dumps(await caller.receive())
        await caller.send(answer(id, {"word": "hunter2", "note": "ok"}))
        assert (await caller.receive())["result"]["value"] == {"word": "hunter2", "note": "ok"}
        assert (await asker.receive())["result"]["values"] == {"word": "hunter2", "note": "ok"}
        seen = [await viewer.receive() for _ in range(2)]
        assert [message["method"] for message in seen] == ["terminal/pending", "terminal/answered"]
        assert "hunter2" not in json.dumps(seen)
        assert "hunter2" not in json.dumps(await viewer.result("terminal/pending"))
        assert "hunter2" not in json.dumps(await viewer.result("system/tree"))
    assert any(record.levelno == logging.DEBUG for record in caplog.records)
    assert "hunter2" not in caplog.text


async def test_a_frame_is_encoded_once_for_all_who_look(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[object] = []
    encode = attachments.encode_notice

    def counting(notice: Any) -> bytes:
        encoded.append(notice)
        return encode(notice)

    monkeypatch.setattr(attachments, "encode_notice", counting)
    async with AsyncExitStack() as stack:
        viewers = [await stack.enter_async_context(peer(site.url)) for _ in range(30)]
        for viewer in viewers:
            await viewer.result("terminal/attach", {"terminal": "ops"})
        id = await site.ops.park(Form(ONE_FIELD))
        for viewer in viewers:
            assert (await viewer.receive())["params"]["form"]["id"] == id
        assert len(encoded) == 1


async def test_what_happens_at_one_terminal_is_not_sent_to_those_who_look_at_another(site: Site, caller: Peer) -> None:
    site.terminals.add("other")
    await caller.result("terminal/attach", {"terminal": "other"})
    for _ in range(5):
        await site.ops.park(Form(ONE_FIELD))
    assert "terminals" in await caller.result("terminal/list")


async def test_forms_are_shown_as_their_documents_say(site: Site, caller: Peer) -> None:
    odd = {"fields": [{"control": "text", "name": "a", "meta": {"n": 5.0}, "label": "caf\u00e9 \u2028 1.0"}]}
    await site.ops.park(Form(odd))
    await site.ops.park(Form(ONE_FIELD))
    forms = (await caller.result("terminal/attach", {"terminal": "ops"}))["pending"]
    assert [form["schema"] for form in forms] == [odd, ONE_FIELD]
