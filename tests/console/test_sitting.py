"""What `greenroom attach` does when the server's side fails it, driven in this process."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import trio

from greenroom.actors.cli.attach import drive
from greenroom.actors.client import Client, connect
from greenroom.actors.console import LinePrompts, LineReader
from greenroom.protocol.errors import GreenroomError, RpcError
from greenroom.protocol.terminals import AnswerResult
from tests.console.desk import Desk
from tests.console.person import PATIENCE
from tests.console.piping import form_of

NAME = form_of({"name": "name", "label": "Name"})


class Seat:
    """Where a pipe drives the terminal `ops`: its other end, what is printed, and how it ended."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self.out = io.StringIO()
        self.code: int | None = None
        self.error: GreenroomError | None = None
        self.scope = trio.CancelScope()

    def types(self, lines: str) -> None:
        os.write(self._sink, lines.encode())

    async def drive(self, client: Client) -> None:
        with self.scope:
            try:
                self.code = await drive(client, "ops", LinePrompts(LineReader(self._source), self.out))
            except GreenroomError as error:
                self.error = error


@pytest.fixture
def seat() -> Iterator[Seat]:
    source, sink = os.pipe()
    yield Seat(source, sink)
    os.close(source)
    os.close(sink)


async def test_an_answer_of_which_nothing_is_known_is_not_sent_again(
    desk: Desk, seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Mapping[str, Any]] = []

    async def answer(self: Client, terminal: str, id: str, values: Mapping[str, Any]) -> AnswerResult:
        sent.append(values)
        if len(sent) == 1:
            raise RpcError("OUTCOME", "It may have happened.")
        return await true_answer(self, terminal, id, values)

    true_answer = Client.answer
    monkeypatch.setattr(Client, "answer", answer)
    await desk.ask(NAME)
    second = await desk.ask(NAME)
    seat.types("Ada\nGrace\n")
    with trio.fail_after(PATIENCE):
        async with connect(desk.url) as client, trio.open_nursery() as nursery:
            nursery.start_soon(seat.drive, client)
            assert await second.answer() == {"name": "Grace"}
            nursery.cancel_scope.cancel()
    assert sent == [{"name": "Ada"}, {"name": "Grace"}]
    assert "may have arrived or not" in seat.out.getvalue()
    assert len(desk.pending()) == 1


async def test_leaving_while_an_answer_is_under_way_says_that_nobody_knows(
    desk: Desk, seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way = trio.Event()

    async def answer(*_: object) -> AnswerResult:
        under_way.set()
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(Client, "answer", answer)
    await desk.ask(NAME)
    seat.types("Ada\n")
    with trio.fail_after(PATIENCE):
        async with connect(desk.url) as client, trio.open_nursery() as nursery:
            nursery.start_soon(seat.drive, client)
            await under_way.wait()
            seat.scope.cancel()
    assert "may have arrived or not" in seat.out.getvalue()


async def test_the_end_of_the_connection_ends_it(desk: Desk, seat: Seat) -> None:
    await desk.ask(NAME)
    with trio.fail_after(PATIENCE):
        async with connect(desk.url, reconnect=False) as client, trio.open_nursery() as nursery:
            nursery.start_soon(seat.drive, client)
            await desk.stop_listening()
    assert seat.error is not None
    assert seat.error.code == "CLOSED"


async def test_an_answer_that_comes_second_is_not_called_accepted(
    desk: Desk, seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(self: Client, terminal: str, id: str, values: Mapping[str, Any]) -> AnswerResult:
        await desk.runtime.terminals.answer(terminal, id, {"name": "Grace"})
        return await true_answer(self, terminal, id, values)

    true_answer = Client.answer
    monkeypatch.setattr(Client, "answer", answer)
    asked = await desk.ask(NAME)
    seat.types("Ada\n")
    with trio.fail_after(PATIENCE):
        async with connect(desk.url) as client, trio.open_nursery() as nursery:
            nursery.start_soon(seat.drive, client)
            assert await asked.answer() == {"name": "Grace"}
            await desk.ask(NAME)
            while seat.out.getvalue().count("Untitled form") < 2:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert "Answered." not in seat.out.getvalue()
    assert "Somebody else has answered it." in seat.out.getvalue()
