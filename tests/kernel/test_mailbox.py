"""The mailbox: bounded, fair, with a lane that overtakes, and never half a delivery."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from greenroom.runtime.mailbox import BURST, Closed, Mailbox
from tests.cancelling import Doomed, at_every_step
from tests.kernel.cast import quiet


def taken(mailbox: Mailbox) -> list[Any]:
    """What can be taken without waiting."""
    items: list[Any] = []
    while (item := mailbox.take()) is not None:
        items.append(item)
    return items


async def test_messages_come_in_the_order_in_which_they_were_put() -> None:
    mailbox = Mailbox()
    for number in range(10):
        assert mailbox.offer(number)
    assert mailbox.depth == 10
    assert [await mailbox.receive() for _ in range(10)] == list(range(10))
    assert mailbox.depth == 0


@pytest.mark.parametrize("capacity", [1, 2, 5])
async def test_it_holds_its_capacity_and_refuses_one_more(capacity: int) -> None:
    mailbox = Mailbox(capacity)
    assert [mailbox.offer(number) for number in range(capacity + 2)] == [True] * capacity + [False, False]
    assert await mailbox.receive() == 0
    assert mailbox.offer("after")
    assert not mailbox.offer("too many")
    assert taken(mailbox) == [*range(1, capacity), "after"]


def test_a_capacity_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="at least one message"):
        Mailbox(0)


async def test_the_control_lane_overtakes_and_has_no_bound() -> None:
    mailbox = Mailbox(1)
    mailbox.offer("message")
    for number in range(5):
        mailbox.control(number)
    assert mailbox.depth == 6
    assert taken(mailbox) == [0, 1, 2, 3, 4, "message"]


@pytest.mark.parametrize("capacity", [1, 3])
async def test_senders_stand_in_line_and_are_let_in_in_order(capacity: int) -> None:
    mailbox = Mailbox(capacity)
    for number in range(capacity):
        mailbox.offer(number)
    async with trio.open_nursery() as nursery:
        for number in range(capacity, capacity + 4):
            nursery.start_soon(mailbox.send, number)
            await quiet()
        assert mailbox.depth == capacity + 4
        assert not mailbox.offer("barging in")
        received = [await mailbox.receive() for _ in range(capacity + 4)]
    assert received == list(range(capacity + 4))


async def test_nobody_barges_in_between_a_message_taken_and_the_first_in_line() -> None:
    mailbox = Mailbox(1)
    mailbox.offer("first")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mailbox.send, "second")
        await quiet()
        assert mailbox.take() == "first"
        assert not mailbox.offer("third")  # the sender has not run again, but its place is taken
    assert taken(mailbox) == ["second"]


async def test_a_receiver_that_is_woken_twice_in_one_step_runs_once() -> None:
    mailbox = Mailbox()
    received: list[Any] = []

    async def receive() -> None:
        while True:
            received.append(await mailbox.receive())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await quiet()
        mailbox.offer(1)
        mailbox.offer(2)
        mailbox.control("now")
        mailbox.wake()
        await quiet()
        assert received == ["now", 1, 2]
        nursery.cancel_scope.cancel()


async def test_a_mailbox_has_one_receiver() -> None:
    mailbox = Mailbox()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(mailbox.receive)
        await quiet()
        with pytest.raises(trio.BusyResourceError):
            await mailbox.receive()
        mailbox.offer("to the first")


async def test_a_long_line_is_let_in_one_after_the_other_and_may_be_left_anywhere() -> None:
    mailbox = Mailbox(1)
    mailbox.offer(-1)
    scopes = [trio.CancelScope() for _ in range(300)]

    async def send(number: int) -> None:
        with scopes[number]:
            await mailbox.send(number)

    async with trio.open_nursery() as nursery:
        for number in range(300):
            nursery.start_soon(send, number)
            await quiet()
        for number in range(0, 300, 3):
            scopes[number].cancel()
        received = [await mailbox.receive() for _ in range(201)]
    assert received == [-1, *(number for number in range(300) if number % 3)]


async def test_a_busy_receiver_lets_others_run() -> None:
    mailbox = Mailbox(10_000)
    for number in range(10 * BURST):
        mailbox.offer(number)
    seen: list[str] = []

    async def receive() -> None:
        for _ in range(10 * BURST):
            await mailbox.receive()
        seen.append("received")

    async def other() -> None:
        await trio.lowlevel.checkpoint()
        seen.append("other")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        nursery.start_soon(other)
    assert seen == ["other", "received"]


async def test_send_is_a_checkpoint_though_there_is_room() -> None:
    mailbox = Mailbox()
    with trio.testing.assert_checkpoints():
        await mailbox.send(1)


async def test_a_closed_mailbox_takes_nothing_and_tells_who_waits_there() -> None:
    full, empty = Mailbox(1), Mailbox()
    full.offer("in it")
    told: list[str] = []

    async def waits(who: str, wait: Any) -> None:
        with pytest.raises(Closed):
            await wait
        told.append(who)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waits, "receiver", empty.receive())
        nursery.start_soon(waits, "sender", full.send("never in"))
        await quiet()
        for mailbox in (full, empty):
            mailbox.close()
            mailbox.close()
    assert sorted(told) == ["receiver", "sender"]
    for put in (full.offer, full.control):
        with pytest.raises(Closed):
            put("too late")
    with pytest.raises(Closed):
        await full.send("too late")
    with pytest.raises(Closed):
        await full.receive()
    assert full.depth == 1, "what was in it stays for those who tell its askers"


async def test_a_receiver_that_was_woken_by_a_message_learns_that_it_is_closed() -> None:
    mailbox = Mailbox()
    async with trio.open_nursery() as nursery:

        async def receive() -> None:
            with pytest.raises(Closed):
                await mailbox.receive()

        nursery.start_soon(receive)
        await quiet()
        mailbox.offer(1)
        mailbox.close()


async def test_a_cancelled_send_is_in_whole_or_not_at_all() -> None:
    async def scenario(doomed: Doomed) -> None:
        mailbox = Mailbox(2)
        received: list[Any] = []

        async def receive() -> None:
            while (item := await mailbox.receive()) != "end":
                received.append(item)

        mailbox.offer(0)
        mailbox.offer(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mailbox.send, "ahead")
            await quiet()
            nursery.start_soon(receive)
            sent = await doomed(mailbox.send, "mine")
            await mailbox.send("end")
        assert received == [0, 1, "ahead"] + ([] if sent.cancelled else ["mine"])
        assert mailbox.depth == 0

    assert await at_every_step(scenario) > 2


async def test_a_cancelled_receive_took_nothing() -> None:
    async def scenario(doomed: Doomed) -> None:
        mailbox = Mailbox()
        async with trio.open_nursery() as nursery:

            async def send() -> None:
                for number in range(3):
                    await mailbox.send(number)

            nursery.start_soon(send)
            received = await doomed(mailbox.receive)
        expected = [0, 1, 2] if received.cancelled else [1, 2]
        assert taken(mailbox) == expected

    assert await at_every_step(scenario) > 1


async def test_a_burst_ends_in_a_checkpoint_that_takes_no_message_with_it() -> None:
    async def scenario(doomed: Doomed) -> None:
        mailbox = Mailbox()
        for number in range(2 * BURST):
            mailbox.offer(number)
        received: list[int] = []

        async def receive() -> None:
            while len(received) < 2 * BURST:
                received.append(await mailbox.receive())

        await doomed(receive)
        rest: list[int] = []
        while mailbox.depth:
            rest.append(await mailbox.receive())
        assert received + rest == list(range(2 * BURST))

    assert await at_every_step(scenario) > 1
