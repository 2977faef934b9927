"""Any events in any order: what a log takes is whole wherever it is cut, and what it refuses changes nothing."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.actors.session import Session
from greenroom.actors.session.loading import restored
from greenroom.protocol.sessions import SessionHeader, repair
from greenroom.protocol.sessions.codec import encode, read_lines
from tests.sessions.writing import code_of, fresh

small = st.integers(0, 3)
seqs = st.integers(-1, 25)

cited = st.one_of(st.none(), st.none(), st.none(), seqs)

OPS = st.one_of(
    st.tuples(st.just("tool/call"), st.none() | small, cited),
    st.tuples(st.just("tool/result"), st.none() | small, cited),
    st.tuples(st.just("approval/asked"), small, cited),
    st.tuples(st.just("approval/decided"), small, st.booleans()),
    st.tuples(st.sampled_from(["turn/start", "turn/end", "step/start", "step/end", "user/message", "todo/write"])),
    st.tuples(st.just("assistant/message"), small, st.booleans()),
    st.tuples(st.just("fold"), seqs, seqs),
)
BATCH: list[tuple[Any, ...]] = [("turn/start",), ("step/start",), ("assistant/message", 3, False)]


def attempt(session: Session, op: tuple[Any, ...]) -> None:
    """Append what the operation says: where it names no event, what would fit, if anything does."""
    order = session.order
    batch = order.batch
    match op:
        case ["turn/end"]:
            session.append("turn/end", {"reason": "completed"})
        case ["user/message"]:
            session.append("user/message", {"content": "x"})
        case ["todo/write"]:
            session.append("todo/write", {"todos": []})
        case [str() as kind]:
            session.append(kind, {})
        case ["assistant/message", count, interrupted]:
            calls = [{"id": "1", "name": "t", "arguments": {}}] * count
            session.append("assistant/message", {"content": "", "calls": calls, "interrupted": interrupted})
        case ["tool/call", position, cited]:
            if cited is None:
                cited = next(iter(order.calls), -1) if position is None else batch.seq if batch else -1
            data: dict[str, Any] = {"callId": "1", "name": "t", "arguments": {}, "position": position}
            session.append("tool/call", data, sources=[cited])
        case ["tool/result", position, cited]:
            if cited is None:
                cited = next((seq for seq, call in order.calls.items() if call.data.position == position), None)
                cited = cited if cited is not None else batch.seq if batch else -1
            data = {"callId": "1", "name": "t", "content": str(position), "position": position}
            session.append("tool/result", data, sources=[cited])
        case ["approval/asked", id, cited]:
            cited = next(iter(order.calls), -1) if cited is None else cited
            session.append("approval/asked", {"id": str(id), "name": "t"}, sources=[cited])
        case ["approval/decided", id, allowed]:
            decision = "allowed-once" if allowed else "rejected"
            session.append("approval/decided", {"id": str(id), "decision": decision})
        case ["fold", start, end]:
            session.append("assistant/message", {"content": "recap"}, replace=(start, end))
        case _:
            raise AssertionError(op)


def written(events: Any) -> bytes:
    header = SessionHeader(id="s", created_at=0)
    return b"".join(encode(record) + b"\n" for record in (header, *events))


@settings(max_examples=300)
@given(st.lists(OPS, min_size=10, max_size=25), st.integers(0, 3))
def test_any_log_is_whole_wherever_it_is_cut(ops: list[tuple[Any, ...]], opened: int) -> None:
    session = fresh()
    for op in [*BATCH[:opened], *ops]:
        before, nodes = session.events(), list(session.order.surface.nodes)
        if code_of(attempt, session, op) == "none":
            assert session.events()[:-1] == before
        else:
            assert (session.events(), session.order.surface.nodes) == (before, nodes)
    content = written(session.events())
    for length in range(session.count + 1):
        part = Session(session.header, session.events()[:length])
        torn = read_lines(content[: len(written(part.events()))] + b'{"type":"us', "s")
        assert tuple(map(restored, torn.events)) == part.events()
        whole = Session(session.header, [*part.events(), *repair(part.order, part.events())])
        assert repair(whole.order, whole.events()) == []
        assert whole.order.turn is whole.order.step is None
        assert not whole.order.calls
        assert not whole.order.asked
        answers = [event for event in whole.events() if getattr(event.data, "calls", ())]
        results = [event for event in whole.events() if event.type == "tool/result" and event.data.position is not None]
        assert len(results) == sum(len(answer.data.calls) for answer in answers)
        if not any(op[0] == "fold" for op in ops):
            owed = 0
            for message in whole.history():
                assert (message.role == "tool") == (owed > 0), "a result is not in its place"
                owed = len(message.calls) if message.role == "assistant" else owed - (message.role == "tool")
            assert owed == 0
