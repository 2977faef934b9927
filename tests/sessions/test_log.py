"""One session in memory: what may be appended, where, and what is read out of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from greenroom.actors.session import Session
from greenroom.protocol.errors import SessionError
from greenroom.protocol.sessions import TURNS, Order, SessionEvent, SessionHeader, Turns, repair
from tests.sessions.writing import answer, ask, begin, code_of, fresh, log_of, result, start


def test_events_are_numbered_from_nought_and_dated() -> None:
    session = fresh()
    first, second = (session.append("user/message", {"content": text}) for text in ("a", "b"))
    assert (first.seq, second.seq, second.time, session.last) == (0, 1, 1500, 1)
    assert session.events(after=0) == (second,)
    assert session.events(after=-5) == (first, second)


def test_what_happens_to_the_value_later_changes_nothing() -> None:
    session = fresh()
    begin(session)
    arguments: dict[str, Any] = {"deep": [1]}
    calls = [{"id": "1", "name": "t", "arguments": arguments}]
    event = session.append("assistant/message", {"content": "", "calls": calls})
    arguments["deep"].append(2)
    assert event.data.calls[0].arguments == {"deep": [1]}
    with pytest.raises(TypeError):
        event.data.calls[0].arguments["deep"].append(3)
    with pytest.raises(AttributeError):
        event.data.content = "other"


@pytest.mark.parametrize(
    ("kind", "data", "code"),
    [
        ("user/message", {"content": 5}, "INVALID"),
        ("user/message", {}, "INVALID"),
        ("user/message", {"content": "x", "more": 1}, "INVALID"),
        ("user/message", {"content": "\ud800"}, "INVALID"),
        ("user/message", "text", "INVALID"),
        ("user/message", None, "INVALID"),
        ("mine/note", {}, "UNSUPPORTED"),
        ("todo/write", {"todos": [{"content": "x", "status": "lost"}]}, "INVALID"),
        ("todo/write", {"todos": math.nan}, "INVALID"),
        ("turn/end", {"reason": "completed"}, "ORDER"),
        ("step/start", {}, "ORDER"),
        ("step/end", {}, "ORDER"),
        ("assistant/message", {"content": "x"}, "ORDER"),
        ("tool/call", {"callId": "1", "name": "t", "arguments": {}, "position": 0}, "ORDER"),
        ("tool/call", {"callId": "1", "name": "t", "arguments": {}}, "ORDER"),
        ("tool/result", {"callId": "1", "name": "t", "content": ""}, "ORDER"),
        ("approval/asked", {"id": "1", "name": "t"}, "ORDER"),
        ("approval/decided", {"id": "1", "decision": "rejected"}, "ORDER"),
        ("session/end-seed", {}, "ORDER"),
    ],
)
def test_what_cannot_stand_in_a_log_is_refused_and_changes_nothing(kind: str, data: object, code: str) -> None:
    session = fresh()
    assert code_of(session.append, kind, data) == code
    assert session.count == 0


def test_a_type_of_ones_own_is_kept_if_it_may_be_passed_over() -> None:
    session = fresh()
    event = session.append("mine/note", {"by": ["ada"]}, ignorable=True)
    assert (event.data, event.ignorable) == ({"by": ["ada"]}, True)


def test_each_call_of_an_answer_has_one_beginning_and_one_result() -> None:
    session = begin(fresh())
    batch = ask(session, "1", "1")
    assert code_of(ask, session, "2") == "ORDER", "a step has one answer"
    called = start(session, batch, 0)
    assert code_of(start, session, batch, 0) == "ORDER", "it has begun"
    assert code_of(session.append, "step/end", {}) == "ORDER", "a call is open"
    result(session, called)
    assert code_of(result, session, called) == "ORDER", "it is over"
    assert code_of(session.append, "step/end", {}) == "ORDER", "the second call has no result"
    never = {"callId": "1", "name": "press", "content": "Error: denied", "position": 1}
    assert code_of(session.append, "tool/result", never | {"name": "other"}, sources=[batch]) == "ORDER"
    assert code_of(session.append, "tool/result", never | {"position": 7}, sources=[batch]) == "ORDER"
    session.append("tool/result", never, sources=[batch])
    session.append("step/end", {})
    session.append("turn/end", {"reason": "completed"})


def test_a_call_made_in_a_tool_cites_that_call_and_is_not_in_the_history() -> None:
    session = begin(fresh())
    outer = start(session, ask(session, "1"), 0)
    inner = session.append("tool/call", {"callId": "x", "name": "look", "arguments": {}}, sources=[outer]).seq
    result(session, inner, "inner")
    result(session, outer, "outer")
    assert [message.content for message in session.history()] == ["go", "", "outer"]


def test_results_stand_behind_their_answer_in_the_order_of_its_calls() -> None:
    session = begin(fresh())
    batch = ask(session, "1", "1", "1")
    first, last = start(session, batch, 0), start(session, batch, 2)
    session.append("user/message", {"content": "meanwhile"})
    result(session, last, "third")
    result(session, first, "first")
    result(session, start(session, batch, 1), "second")
    assert [message.content for message in session.history()] == ["go", "", "first", "second", "third", "meanwhile"]


def test_a_message_can_stand_in_place_of_older_ones_which_the_log_keeps() -> None:
    session = fresh()
    answer(session, "one")
    answer(session, "two")
    nodes = list(session.order.surface.nodes)
    recap = session.append("assistant/message", {"content": "recap"}, replace=(nodes[0], nodes[2]))
    assert recap.source_event_seqs == tuple(nodes[:3])
    assert [message.content for message in session.history()] == ["recap", "two"]
    assert code_of(session.append, "user/message", {"content": "x"}, replace=(nodes[0], nodes[1])) == "ORDER"
    assert code_of(session.append, "user/message", {"content": "x"}, replace=(nodes[3], recap.seq)) == "ORDER"
    again = Session(session.header, session.events())
    assert again.history() == session.history()


def test_an_approval_is_decided_once() -> None:
    session = begin(fresh())
    called = start(session, ask(session, "1"), 0)
    session.append("approval/asked", {"id": "q", "name": "press"}, sources=[called])
    assert code_of(session.append, "approval/asked", {"id": "q", "name": "press"}, sources=[called]) == "ORDER"
    session.append("approval/decided", {"id": "q", "decision": "allowed-once"})
    assert code_of(session.append, "approval/decided", {"id": "q", "decision": "rejected"}) == "ORDER"


def test_projections_come_to_the_same_for_the_same_events() -> None:
    session = fresh()
    assert session.snapshot().as_of_seq == -1
    answer(session, "one")
    session.append("todo/write", {"todos": [{"content": "a", "status": "pending"}]})
    session.append("todo/write", {"todos": [{"content": "b", "status": "completed"}]})
    snapshot = session.snapshot()
    assert snapshot.as_of_seq == session.last
    assert [todo.content for todo in snapshot.values["todos"]] == ["b"]
    assert snapshot.values["turns"] == Turns(1, False, "completed")
    foreign = session.event(session.last)
    state = Turns(3)
    assert TURNS.apply(state, foreign) is state


# -------------------------------------------------------------------- repair


def repaired(session: Session) -> list[SessionEvent]:
    """What is added to a log like that; and that a second repair adds nothing."""
    added = repair(session.order, session.events())
    whole = Session(session.header, [*session.events(), *added])
    assert repair(whole.order, whole.events()) == []
    assert {event.time for event in added} <= {event.time for event in session.events()[-1:]}
    return added


@pytest.mark.case("pipeline", 29)
def test_an_open_call_is_repaired_as_of_unknown_outcome_and_a_second_repair_adds_nothing() -> None:
    session = begin(fresh())
    called = start(session, ask(session, "1"), 0)
    added = repaired(session)
    assert log_of(added) == ["tool/result", "step/end", "turn/end"]
    assert added[0].data.error.code == "TOOL_OUTCOME_UNKNOWN"
    assert added[0].source_event_seqs == (called,)
    assert added[2].data.reason == "interrupted"


def test_calls_of_one_id_are_repaired_by_position() -> None:
    session = begin(fresh())
    batch = ask(session, "same", "same", "same", "same")
    result(session, start(session, batch, 0))
    start(session, batch, 1)
    asked = start(session, batch, 2)
    session.append("approval/asked", {"id": "q", "name": "press"}, sources=[asked])
    added = repaired(session)
    assert log_of(added) == ["approval/decided", *["tool/result"] * 3, "step/end", "turn/end"]
    told = [(event.data.position, event.data.error.code) for event in added[1:4]]
    assert told == [(1, "TOOL_OUTCOME_UNKNOWN"), (2, "TOOL_NOT_STARTED"), (3, "TOOL_NOT_STARTED")]
    whole = Session(session.header, [*session.events(), *added])
    assert [message.role for message in whole.history()] == ["user", "assistant", *["tool"] * 4]


@pytest.mark.parametrize(("decision", "code"), [("allowed-once", "OUTCOME_UNKNOWN"), ("rejected", "NOT_STARTED")])
def test_a_call_that_was_decided_on_may_have_run_only_if_it_was_allowed(decision: str, code: str) -> None:
    session = begin(fresh())
    called = start(session, ask(session, "1"), 0)
    session.append("approval/asked", {"id": "q", "name": "press"}, sources=[called])
    session.append("approval/decided", {"id": "q", "decision": decision})
    assert repaired(session)[0].data.error.code == f"TOOL_{code}"


def test_a_call_in_a_tool_is_repaired_before_the_one_around_it() -> None:
    session = begin(fresh())
    outer = start(session, ask(session, "1"), 0)
    inner = session.append("tool/call", {"callId": "x", "name": "look", "arguments": {}}, sources=[outer]).seq
    added = repaired(session)
    assert [event.source_event_seqs for event in added[:2]] == [(inner,), (outer,)]


def test_a_log_with_no_open_turn_needs_no_repair() -> None:
    session = fresh()
    assert repair(session.order, ()) == []
    answer(session, "one")
    session.append("user/message", {"content": "more"})
    assert repaired(session) == []


def test_a_log_is_valid_wherever_it_is_cut() -> None:
    session = begin(fresh())
    batch = ask(session, "1", "2", "3")
    called = start(session, batch, 0)
    session.append("approval/asked", {"id": "q", "name": "press"}, sources=[called])
    session.append("approval/decided", {"id": "q", "decision": "allowed-once"})
    inner = session.append("tool/call", {"callId": "x", "name": "look", "arguments": {}}, sources=[called]).seq
    result(session, inner)
    result(session, called)
    result(session, start(session, batch, 1))
    for length in range(session.count + 1):
        part = Session(session.header, session.events()[:length])
        whole = Session(session.header, [*part.events(), *repaired(part)])
        assert whole.order.turn is None
        roles = [message.role for message in whole.history()]
        assert roles.count("tool") == (3 if "assistant" in roles else 0)


def test_the_seed_of_a_fork_ends_where_its_header_says() -> None:
    header = SessionHeader(id="s", created_at=0, seed_length=1)
    session = Session(header)
    session.append("user/message", {"content": "of the parent"})
    assert code_of(session.append, "user/message", {"content": "x"}) == "ORDER"
    session.append("session/end-seed", {})
    assert code_of(session.append, "session/end-seed", {}) == "ORDER"
    session.append("user/message", {"content": "its own"})
    assert [event.data.content for event in session.live_events()] == ["its own"]


def test_the_order_says_why() -> None:
    with pytest.raises(SessionError, match="no turn is open"):
        fresh().append("turn/end", {"reason": "completed"})
    order = Order(SessionHeader(id="s", created_at=0))
    with pytest.raises(SessionError, match="the next one is 0"):
        order.check(SessionEvent(type="user/message", seq=4, time=0, data=None))
