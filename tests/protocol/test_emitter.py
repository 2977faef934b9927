"""The synchronous emitter: order, snapshots, contained failures."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from greenroom.protocol.emitter import Emitter
from greenroom.protocol.errors import GreenroomError

EVENTS = frozenset({"open", "shut"})


def test_listeners_are_called_in_order_of_registration_hooks_first() -> None:
    heard: list[str] = []
    emitter = Emitter(EVENTS, on={"open": lambda: heard.append("hook")})
    emitter.on("open", lambda: heard.append("first"))
    emitter.on("shut", lambda: heard.append("other"))
    emitter.on("open", lambda: heard.append("second"))
    emitter.emit("open")
    assert heard == ["hook", "first", "second"]


def test_a_listener_gets_the_arguments_of_the_event() -> None:
    heard: list[tuple[object, ...]] = []
    emitter = Emitter(EVENTS)
    emitter.on("open", lambda *args: heard.append(args))
    emitter.emit("open", "a", 1)
    assert heard == [("a", 1)]


def test_changes_made_while_an_event_is_emitted_count_from_the_next_one() -> None:
    heard: list[str] = []
    emitter = Emitter(EVENTS)

    def first() -> None:
        heard.append("first")
        leave_second()
        emitter.on("open", lambda: heard.append("late"))

    emitter.on("open", first)
    leave_second = emitter.on("open", lambda: heard.append("second"))
    emitter.emit("open")
    assert heard == ["first", "second"]
    heard.clear()
    emitter.emit("open")
    assert heard == ["first", "late"]


def test_one_registration_leaves_at_a_time_and_only_once() -> None:
    heard: list[int] = []
    emitter = Emitter(EVENTS)

    def listener() -> None:
        heard.append(1)

    leave = emitter.on("open", listener)
    emitter.on("open", listener)
    assert emitter.count == 2
    leave()
    leave()
    assert emitter.count == 1
    emitter.emit("open")
    assert heard == [1]


def test_a_raising_listener_stops_neither_siblings_nor_the_caller() -> None:
    heard: list[object] = []
    emitter = Emitter(EVENTS, error=lambda error, event: heard.append((str(error), event)))
    emitter.on("open", raising(ValueError("no")))
    emitter.on("open", lambda: heard.append("sibling"))
    emitter.emit("open")
    assert heard == [("no", "open"), "sibling"]


def test_a_raising_error_handler_is_contained_too() -> None:
    heard: list[str] = []
    emitter = Emitter(EVENTS, error=raising(RuntimeError("worse")))
    emitter.on("open", raising(ValueError("no")))
    emitter.on("open", lambda: heard.append("sibling"))
    emitter.emit("open")
    assert heard == ["sibling"]


def test_what_is_no_exception_propagates() -> None:
    class Cancelled(BaseException):
        pass

    heard: list[str] = []
    emitter = Emitter(EVENTS, error=lambda error, event: heard.append(event))
    emitter.on("open", raising(Cancelled()))
    emitter.on("open", lambda: heard.append("sibling"))
    with pytest.raises(Cancelled):
        emitter.emit("open")
    assert heard == []


def test_an_unknown_event_is_refused_with_the_known_ones() -> None:
    with pytest.raises(GreenroomError, match=r"'opne'.*open, shut") as refused:
        Emitter(EVENTS).on("opne", print)
    assert refused.value.code == "EVENT"
    assert refused.value.context == {"event": "opne", "known": ["open", "shut"]}
    with pytest.raises(GreenroomError, match="'opne'"):
        Emitter(EVENTS, on={"opne": print})


def test_closing_silences_for_good_but_lets_the_event_in_hand_finish() -> None:
    heard: list[str] = []
    emitter = Emitter(EVENTS)

    def first() -> None:
        heard.append("first")
        emitter.close()

    emitter.on("open", first)
    leave = emitter.on("open", lambda: heard.append("second"))
    emitter.emit("open")
    assert heard == ["first", "second"]
    emitter.close()
    assert emitter.closed
    assert emitter.count == 0
    leave()
    emitter.on("open", lambda: heard.append("late"))
    emitter.emit("open")
    assert heard == ["first", "second"]


def test_an_emitter_without_listeners_holds_no_containers() -> None:
    emitter = Emitter(EVENTS)
    fresh = sys.getsizeof(emitter)
    leave = emitter.on("open", print)
    leave()
    assert emitter.count == 0
    assert all(getattr(emitter, slot) in (None, False, EVENTS) for slot in Emitter.__slots__)
    assert fresh <= 64


def raising(error: BaseException) -> Callable[..., None]:
    def listener(*_: object) -> None:
        raise error

    return listener
