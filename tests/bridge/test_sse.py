"""Event streams as text: what is written can be read, however it was cut."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.protocol.errors import BridgeError
from greenroom.protocol.sse import COMMENT, SSEEvent, SSEParser, write_event

# Ends of lines, what looks like one, and the characters that mean something in a line.
TEXT = st.text(st.sampled_from("adei: \0\n\r\u2028\u2029\x85\v\f\x1c\ufeff😀1"), max_size=12)


def parsed(text: str, *, limit: int | None = None) -> list[SSEEvent]:
    return SSEParser(limit).parse(text)


def in_chunks(parser: SSEParser, text: str, sizes: list[int]) -> list[SSEEvent]:
    """Read the text in pieces of these sizes, again and again."""
    events: list[SSEEvent] = []
    at = turn = 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        events += parser.parse(text[at : at + size])
        at, turn = at + size, turn + 1
    return events


# -------------------------------------------------------------------- reading


@given(
    st.lists(
        st.one_of(
            TEXT,
            st.sampled_from(["data: a\n\n", "id: 1\r\n", "retry: 10\r", "event: e\n", ": no\n", "\ufeff", "\r\n"]),
        )
    ),
    st.lists(st.integers(1, 7), min_size=1),
)
def test_any_cut_gives_the_same_events(parts: list[str], sizes: list[int]) -> None:
    text = "".join(parts)
    whole, cut = SSEParser(), SSEParser()
    events = whole.parse(text)
    assert in_chunks(cut, text, sizes) == events
    assert (cut.id, cut.retry) == (whole.id, whole.retry)
    assert cut.flush() == whole.flush()


@given(st.text(), TEXT, st.text(st.characters(exclude_characters="\n\r\0", codec="utf-8")), st.integers(0, 10**9))
def test_what_is_written_is_read_back(data: str, more: str, name: str, retry: int) -> None:
    text = data.encode(errors="replace").decode() + more
    frame = write_event(name, text, id=name, retry=retry).decode()
    (event,) = parsed(frame)
    assert event.data == text.replace("\r\n", "\n").replace("\r", "\n")
    assert (event.event or "", event.id or "", event.retry) == (name, name, retry)


@pytest.mark.case("terminals", 34)
def test_lines_end_at_every_kind_of_line_end_also_across_pieces() -> None:
    parser = SSEParser()
    assert parser.parse("data: a\r") == []
    assert parser.parse("\ndata: b\r\n\r") == [SSEEvent("a\nb")]
    assert parser.parse("\ndata: c\n\n") == [SSEEvent("c")]


@pytest.mark.case("terminals", 34)
@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("\ufeffdata: a\n\n", [SSEEvent("a")]),
        ("\ufeff\ufeffdata: a\n\n", []),
        ("data: a\n\n\ufeffdata: b\n\n", [SSEEvent("a")]),
        ("retry: 1.5\ndata: a\n\n", [SSEEvent("a")]),
        ("retry: -1\ndata: a\n\n", [SSEEvent("a")]),
        ("retry:\ndata: a\n\n", [SSEEvent("a")]),
        (f"retry: {'9' * 5000}\ndata: a\n\n", [SSEEvent("a")]),
        ("retry: 007\ndata: a\n\n", [SSEEvent("a", retry=7)]),
        ("data\n\n", [SSEEvent("")]),
        ("data\ndata\n\n", [SSEEvent("\n")]),
        ("data:\n\n", [SSEEvent("")]),
        ("data:  a\n\n", [SSEEvent(" a")]),
        ("data:a:b\n\n", [SSEEvent("a:b")]),
        ("event: e\nid: 1\n\ndata: a\n\n", [SSEEvent("a")]),
        ("event: d\nevent: e\nid: 1\nid: 2\ndata: a\n\n", [SSEEvent("a", "e", "2")]),
        ("id: 1\0\ndata: a\n\n", [SSEEvent("a")]),
        ("id: 1\nid: 2\0\ndata: a\n\n", [SSEEvent("a", id="1")]),
        ("id\ndata: a\n\n", [SSEEvent("a", id="")]),
        ("Data: a\n data: b\ndatax: c\n\n", []),
        (": data: a\n:\n\n", []),
        ("data: a", []),
        ("data: a\n", []),
    ],
)
def test_lines_are_read_as_the_standard_says(text: str, events: list[SSEEvent]) -> None:
    assert parsed(text) == events


@pytest.mark.case("reports/clients", 4)
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_only_carriage_return_and_line_feed_end_a_line(end: str) -> None:
    label = "a\u2028b\u2029c\x85d\ve\ff\x1cg"
    assert in_chunks(SSEParser(), f"data: {label}{end}{end}", [1]) == [SSEEvent(label)]


def test_an_id_and_a_waiting_time_outlive_their_event_and_their_stream() -> None:
    parser = SSEParser()
    assert parser.parse("id: 1\nretry: 5\ndata: a\n\ndata: b\n\nid: 2\n") == [
        SSEEvent("a", id="1", retry=5),
        SSEEvent("b"),
    ]
    assert (parser.id, parser.retry) == ("1", 5)
    parser.reset()
    assert parser.parse("\ufeffdata: c\n\n") == [SSEEvent("c")]
    assert (parser.id, parser.retry) == ("1", 5)


def test_an_unfinished_event_is_lost_unless_it_is_flushed() -> None:
    parser = SSEParser()
    parser.parse("event: e\ndata: a\ndata: b")
    assert parser.flush() == [SSEEvent("a\nb", "e")]
    assert parser.flush() == []
    parser.parse("data: a")
    parser.reset()
    assert parser.flush() == []


# -------------------------------------------------------------------- the limit


@pytest.mark.case("terminals", 35)
def test_more_than_the_limit_is_refused_and_changes_nothing() -> None:
    parser = SSEParser(10)
    with pytest.raises(BridgeError) as raised:
        parser.parse("data: 12345\n\n")
    assert raised.value.code == "OVERFLOW"
    assert raised.value.context == {"limit": 10, "size": 13}
    assert parser.parse("data: 123") == []
    with pytest.raises(BridgeError):
        parser.parse("45")
    assert parser.parse("4") == []
    with pytest.raises(BridgeError):
        parser.parse("\n")
    assert parser.flush() == [SSEEvent("1234")]


def test_what_is_read_makes_room() -> None:
    parser = SSEParser(10)
    for _ in range(100):
        assert parser.parse("data: 12\n\n") == [SSEEvent("12")]


def test_the_limit_counts_utf16_units() -> None:
    assert SSEParser(12).parse("data: 😀😀\n\n") == [SSEEvent("😀😀")]
    with pytest.raises(BridgeError):
        SSEParser(11).parse("data: 😀😀\n\n")


def test_many_short_lines_of_one_event_do_not_pass_the_limit_either() -> None:
    parser = SSEParser(100)
    for _ in range(21):
        assert parser.parse("data: 12345\n") == []
    with pytest.raises(BridgeError) as raised:
        parser.parse("data: 12345\n")
    assert raised.value.context == {"limit": 100, "size": 105}


# -------------------------------------------------------------------- writing


def test_a_frame_has_its_lines_in_order() -> None:
    assert write_event("e", "a\nb\r\nc\rd", id="1", retry=2) == (
        b"event: e\nid: 1\nretry: 2\ndata: a\ndata: b\ndata: c\ndata: d\n\n"
    )
    assert write_event("e", b'{"a":1}') == b'event: e\ndata: {"a":1}\n\n'
    assert write_event("e") == b"event: e\ndata: \n\n"
    assert COMMENT == b": \n\n"


@pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\0b"])
def test_a_name_or_an_id_that_would_end_its_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="end its line"):
        write_event(text)
    with pytest.raises(ValueError, match="end its line"):
        write_event(id=text)


def test_an_absent_member_is_left_out() -> None:
    assert msgspec.to_builtins(SSEEvent("a")) == {"data": "a"}
