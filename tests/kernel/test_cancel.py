"""Tokens that tell others to stop."""

from __future__ import annotations

import trio
import trio.testing

from greenroom.runtime.cancel import Cancel, CancelToken


async def test_a_token_is_set_once_and_stays_set() -> None:
    token = Cancel()
    assert (token.is_set(), token.reason) == (False, None)
    token.set("first")
    token.set("second")
    assert (token.is_set(), token.reason) == (True, "first")
    await token.wait()


async def test_everybody_who_waits_for_a_token_goes_on() -> None:
    token = Cancel()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(token.wait)
        nursery.start_soon(token.wait)
        await trio.testing.wait_all_tasks_blocked()
        token.set()


def test_a_listener_is_called_once_in_the_step_of_whoever_sets_it() -> None:
    token, calls = Cancel(), list[str]()
    close = token.listen(lambda: calls.append("closed"))
    token.listen(lambda: calls.append("open"))
    close()
    close()
    token.set()
    token.set()
    assert calls == ["open"]
    token.listen(lambda: calls.append("late"))()
    assert calls == ["open", "late"]


def test_a_bare_event_is_a_token_too() -> None:
    assert isinstance(trio.Event(), CancelToken)
    assert isinstance(Cancel(), CancelToken)
    assert not isinstance(object(), CancelToken)
