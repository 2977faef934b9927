"""A password on its way through a server that records and logs all that it can."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.client import connect
from greenroom.actors.system import open_runtime
from greenroom.protocol.rpc import FormAnswered, FormPending
from greenroom.protocol.terminals import AnswerFailure, AnswerSuccess
from tests.gateway.conftest import peer, until

FORM = {
    "fields": [
        {"control": "password", "name": "secret", "rule": {"minimum": 3}},
        {"control": "text", "name": "note", "rule": {"required": True}},
    ]
}


@pytest.mark.case("reports/forms", 4)
async def test_a_password_is_seen_by_its_asker_and_its_answerer_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    file, seen, values = tmp_path / "journal.db", list[str](), list[Any]()
    async with open_runtime(data=file) as runtime, trio.open_nursery() as nursery:
        gateway = await runtime.serve()
        runtime.terminals.add("ops")
        runtime.terminals.emitter.on("answer", lambda *told: seen.append(repr(told)))

        async def ask() -> None:
            values.append(await runtime.ask("ops", FORM))

        async def watch() -> None:
            async with peer(gateway.url) as viewer:
                await viewer.call("terminal/attach", {"terminal": "ops"})
                while True:
                    seen.append(json.dumps(await viewer.receive()))

        async def stream(started: trio.Event) -> None:
            port = gateway.url.rpartition(":")[2].removesuffix("/rpc")
            async with await trio.open_tcp_stream("127.0.0.1", int(port)) as socket:
                await socket.send_all(b"GET /terminals/ops?events=all HTTP/1.1\r\nHost: localhost\r\n\r\n")
                while data := await socket.receive_some():
                    seen.append(data.decode())
                    started.set()

        started = trio.Event()
        nursery.start_soon(watch)
        nursery.start_soon(stream, started)
        await started.wait()
        async with connect(gateway.url) as client, client.attach("ops") as ops:
            nursery.start_soon(ask)
            parked = await anext(ops)
            assert isinstance(parked, FormPending)
            for wrong in ({"secret": "hunter2"}, {"secret": 7, "note": "ok"}):
                refused = await client.answer("ops", parked.form.id, wrong)
                assert isinstance(refused, AnswerFailure)
                seen.append(repr(refused))
            accepted = await client.answer("ops", parked.form.id, {"secret": "hunter2", "note": "ok"})
            assert accepted == AnswerSuccess(value={"secret": "hunter2", "note": "ok"})
            assert isinstance(await anext(ops), FormAnswered)
            await until(lambda: values and any("event: answer" in text for text in seen))
        assert values == [{"secret": "hunter2", "note": "ok"}]
        nursery.cancel_scope.cancel()
    recorded = b"".join(path.read_bytes() for path in tmp_path.iterdir())  # noqa: ASYNC240  # nothing else runs
    assert b"hunter2" not in recorded
    assert len(recorded) > 1_000, "there is a journal"
    assert "hunter2" not in "".join(seen)
    assert len(seen) > 4, "others looked on"
    assert "hunter2" not in caplog.text
    assert caplog.records, "there is a log"
