"""A server that is killed while people are being asked, and started again on the same file."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import trio

from greenroom.actors.client import Client, Reconnect, connect
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.rpc import FormPending
from greenroom.protocol.terminals import AnswerFailure, AnswerSuccess
from tests.cli.conftest import SECONDS, Server, begin, run, serving

FORM = {"label": "Go?", "fields": [{"control": "text", "name": "x", "rule": {"required": True}}]}
ID = "the-release-agent"


def kill(server: Server) -> None:
    """End it as a crash does."""
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(SECONDS)


class Asker:
    """A program that asks, and what became of it."""

    def __init__(self, durable: str | None) -> None:
        self.durable = durable
        self.ended = trio.Event()
        self.values: dict[str, Any] | None = None
        self.code = ""

    async def run(self, client: Client) -> None:
        try:
            self.values = await client.ask("ops", FORM, from_="agent", timeout=600, durable=self.durable)
        except GreenroomError as error:
            self.code = error.code
        self.ended.set()


def test_a_durable_ask_of_the_shell_is_found_by_its_name_and_its_client(tmp_path: Path) -> None:
    form = tmp_path / "form.json"
    form.write_text(json.dumps(FORM), "utf-8")
    with serving("--data", str(tmp_path / "greenroom.db")) as server:
        words = ("ask", "ops", str(form), "--durable", "release-4.2", "--client-id", ID)
        first = begin(*words, url=server.url)
        try:
            while not (waiting := json.loads(run("pending", "ops", "--json", url=server.url).out)):
                assert first.poll() is None
        finally:
            first.kill()
            first.communicate()
        assert run("answer", "ops", waiting[0]["id"], "-", url=server.url, stdin='{"x": "go"}').code == 0
        found = run(*words, url=server.url)
        assert json.loads(found.out) == {"x": "go"}


@pytest.mark.case("reports/asking", 3)
async def test_a_form_is_there_after_a_kill_and_its_answer_reaches_the_asker(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "greenroom.db"))
    with trio.fail_after(SECONDS):
        with serving(*data) as server:
            async with connect(server.url, id=ID, reconnect=False) as client, client.attach("ops") as ops:
                lost = Asker("release-4.2")
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(lost.run, client)
                    before = await anext(ops)
                    assert isinstance(before, FormPending)
                    assert before.form.durable
                    kill(server)
                assert lost.code == "CLOSED"
        with serving(*data) as server:
            (listed,) = json.loads(run("pending", "ops", "--json", url=server.url).out)
            assert (listed["id"], listed["durable"]) == (before.form.id, True)
            async with connect(server.url, id=ID) as client, client.attach("ops") as ops:
                (form,) = ops.pending.values()
                assert form == before.form
                attachment = await client.call("terminal/attach", {"terminal": "ops"}, dict[str, Any])
                assert 500_000 < attachment["remaining"][form.id] < 600_000
                recovered = Asker("release-4.2")
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(recovered.run, client)
                    async with connect(server.url) as person:
                        answer = await person.answer("ops", form.id, {"x": "go"})
                        assert answer == AnswerSuccess(value={"x": "go"})
                assert recovered.values == {"x": "go"}
            kill(server)
        with serving(*data) as server:
            async with connect(server.url, id=ID) as client:
                assert await client.pending("ops") == ()
                again = Asker("release-4.2")
                await again.run(client)
                assert again.values == {"x": "go"}
                assert await client.release("release-4.2")
                assert not await client.release("release-4.2")


async def test_a_client_that_comes_back_by_itself_waits_on(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "greenroom.db"))
    asker = Asker("release-4.2")
    with trio.fail_after(SECONDS):
        with serving(*data) as server:
            port = int(server.url.rpartition(":")[2].removesuffix("/rpc"))
            async with connect(server.url, reconnect=Reconnect(first=0.01, longest=0.1)) as client:
                async with trio.open_nursery() as nursery:
                    async with client.attach("ops") as ops:
                        nursery.start_soon(asker.run, client)
                        before = await anext(ops)
                        assert isinstance(before, FormPending)
                    kill(server)
                    with serving(*data, port=port) as anew:
                        async with connect(anew.url) as person:
                            answer = await person.answer("ops", before.form.id, {"x": "go"})
                            assert answer == AnswerSuccess(value={"x": "go"})
                        await asker.ended.wait()
    assert (asker.values, asker.code) == ({"x": "go"}, "")


@pytest.mark.case("reports/asking", 3)
async def test_without_a_journal_a_killed_server_has_forgotten_the_form(tmp_path: Path) -> None:
    with trio.fail_after(SECONDS):
        with serving() as server:
            async with connect(server.url, reconnect=False) as client, client.attach("ops") as ops:
                lost, refused = Asker(None), Asker("key")
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(lost.run, client)
                    parked = await anext(ops)
                    assert isinstance(parked, FormPending)
                    assert not parked.form.durable
                    kill(server)
                assert lost.code == "CLOSED"
        with serving() as server:
            async with connect(server.url, id=ID) as client:
                assert await client.pending("ops") == ()
                answer = await client.answer("ops", parked.form.id, {"x": "go"})
                assert isinstance(answer, AnswerFailure)
                assert answer.error.reason == "unknown"
                await refused.run(client)
                assert refused.code == "DURABLE"


@pytest.mark.case("reports/clients", 6)
async def test_a_server_that_is_told_to_stop_keeps_its_durable_forms(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "greenroom.db"))
    with trio.fail_after(SECONDS):
        with serving(*data) as server:
            async with connect(server.url, id=ID, reconnect=False) as client, client.attach("ops") as ops:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(Asker("key").run, client)
                    before = await anext(ops)
                    assert isinstance(before, FormPending)
                    server.process.send_signal(signal.SIGTERM)
            assert await trio.to_thread.run_sync(server.process.wait, SECONDS) == 0
        with serving(*data) as server:
            listing = run("pending", url=server.url).out
            assert before.form.id in listing
            assert "durable" in listing


def test_a_second_server_on_the_file_is_refused_with_the_owners_pid(tmp_path: Path) -> None:
    data = str(tmp_path / "greenroom.db")
    with serving("--data", data) as server:
        second = run("serve", "--port", "0", "--data", data)
        assert second.code == 1
        assert second.err.startswith("OWNED")
        assert str(server.process.pid) in second.err
