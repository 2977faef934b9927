"""Definitions as they stand, and values that are read as one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows import (
    MAX_TIMER_MS,
    Backoff,
    TaskDefinition,
    WorkflowDefinition,
    check_definition,
    definition_hash,
    is_definition,
    parse_definition,
    parse_draft,
    parse_steps,
    rest_before,
)
from tests.workflows.trees import definition

CYCLE: list[Any] = []
CYCLE.append(CYCLE)


def with_task(**members: Any) -> dict[str, Any]:
    return {"id": "w", "name": "w", "phases": [with_tasks([{"id": "t", "name": "t", **members}])]}


def with_tasks(tasks: Any, **members: Any) -> dict[str, Any]:
    return {"id": "p", "name": "p", "tasks": tasks, **members}


def draft_of_task(**members: Any) -> dict[str, Any]:
    return {"phases": [{"tasks": [members]}]}


def test_a_definition_is_checked_as_it_stands() -> None:
    given = with_task(
        behavior="b",
        retries=2,
        timeout=MAX_TIMER_MS,
        input={"a": [None, 1.5]},
        backoff={"initial": 10, "factor": 1.5, "max": 100, "jitter": 0.5},
        heartbeat=50,
        patience=True,
        recoveries=0,
    )
    read = check_definition(given)
    assert msgspec.json.decode(msgspec.json.encode(read)) == given
    assert check_definition(read) == read


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (with_task(retries="2"), "very type"),
        (with_task(retries=-1), "phases[0].tasks[0].retries"),
        (with_task(retries=1.5), "phases[0].tasks[0].retries"),
        (with_task(retries=True), "phases[0].tasks[0].retries"),
        (with_task(timeout=MAX_TIMER_MS + 1), "at most 2147483647"),
        (with_task(behaviour="b"), "phases[0].tasks[0].behaviour is not known"),
        (with_task(behavior=""), "phases[0].tasks[0].behavior"),
        (with_task(input=[]), "phases[0].tasks[0].input"),
        (with_task(input={"a": {1}}), "phases[0].tasks[0].input.a"),
        (with_task(input={"a": CYCLE}), "phases[0].tasks[0].input.a"),
        (with_task(input={"a": 10**5000}), "cannot be written"),
        (with_task(backoff={}), "phases[0].tasks[0].backoff.initial is missing"),
        (with_task(description=None), "phases[0].tasks[0].description is null"),
        ({"id": "w", "name": "w", "phases": [with_tasks([], concurrency=0)]}, "phases[0].concurrency"),
        ({"id": "w", "name": "w", "phases": [], "bail": 1}, "bail"),
        ({"id": "w", "name": "w", "phases": {}}, "phases"),
        ({"id": "w\ud800", "name": "w", "phases": []}, "cannot be written"),
        ({"name": "w", "phases": []}, "id is missing"),
        (None, "object"),
        (WorkflowDefinition(id="", name="w", phases=()), "id"),
    ],
)
def test_what_is_none_is_refused_by_the_member_at_fault(value: Any, named: str) -> None:
    assert not is_definition(value)
    with pytest.raises(WorkflowError) as refused:
        check_definition(value)
    assert refused.value.code == "MUTATION"
    assert named in refused.value.message
    assert refused.value.context["faults"]


def test_nothing_is_shared_with_what_was_read() -> None:
    given = with_task(input={"a": [1]})
    read = check_definition(given)
    given["phases"][0]["tasks"][0]["input"]["a"].append(2)
    assert read.phases[0].tasks[0].input == {"a": [1]}


def test_parsing_reads_what_was_meant_and_tells_what_it_dropped() -> None:
    meant: dict[str, Any] = {
        "id": 7,
        "colour": "red",
        "phases": [
            {"tasks": [{"run": "x", "retries": "2", "timeout": 2.0, "name": 1.5}], "concurrency": "3"},
            {"tasks": [], "note": {}},
        ],
    }
    reading = parse_draft(meant)
    assert reading is not None
    assert msgspec.json.decode(msgspec.json.encode(reading.value)) == {
        "id": "7",
        "phases": [
            {"tasks": [{"name": "1.5", "retries": 2, "timeout": 2}], "concurrency": 3},
            {"tasks": []},
        ],
    }
    assert reading.ignored == ("colour", "phases[0].tasks[0].run", "phases[1].note")


def test_what_a_task_is_given_is_no_place_for_unknown_members() -> None:
    reading = parse_draft(draft_of_task(input={"anything": {"at": "all"}}))
    assert reading is not None
    assert reading.ignored == ()


@pytest.mark.parametrize(
    "value",
    [
        draft_of_task(retries=True),
        draft_of_task(retries=None),
        draft_of_task(retries="1.5"),
        draft_of_task(name=True),
        draft_of_task(name=None),
        draft_of_task(name=""),
        draft_of_task(name=["a"]),
        draft_of_task(name="\ud800"),
        draft_of_task(patience="true"),
        {"phases": [], "bail": "true"},
        {"phases": [], "bail": 1},
        {"phases": None},
        {},
        [],
        None,
        float("nan"),
        CYCLE,
    ],
)
def test_what_cannot_have_been_meant_is_not_parsed(value: Any) -> None:
    assert parse_draft(value) is None


def test_a_draft_is_no_definition_and_steps_have_names() -> None:
    assert parse_definition({"phases": []}) is None
    assert parse_definition({"id": "w", "name": "w", "phases": []}) is not None
    assert parse_steps({"steps": [{"name": ""}]}) is None
    reading = parse_steps({"steps": [{"name": 42, "after": 1}], "phases": []})
    assert reading is not None
    assert [step.name for step in reading.value.steps] == ["42"]
    assert reading.ignored == ("steps[0].after", "phases")


def test_equal_definitions_share_a_fingerprint() -> None:
    one, other = (check_definition(value) for value in (definition({"a": "x"}), definition({"a": "y"})))
    again = check_definition(dict(reversed(definition({"a": "x"}).items())))
    assert definition_hash(one) == definition_hash(again)
    assert definition_hash(one) != definition_hash(other)


def test_an_unset_member_is_left_out_on_the_wire() -> None:
    assert msgspec.json.encode(TaskDefinition(id="t", name="T")) == b'{"id":"t","name":"T"}'


def test_rests_grow_up_to_their_limit_and_jitter_stays_within_its_share() -> None:
    plain = Backoff(initial=100)
    assert [rest_before(attempt, plain, 0.9) for attempt in (2, 3, 4)] == [0.1, 0.2, 0.4]
    limited = Backoff(initial=100, factor=10, max=500, jitter=0.5)
    assert [rest_before(attempt, limited, 0.5) for attempt in (2, 3, 400)] == [0.1, 0.5, 0.5]
    assert [rest_before(2, limited, chance) for chance in (0.0, 1.0)] == pytest.approx([0.05, 0.15])
    assert rest_before(3, limited, 1.0) == 0.5
    assert rest_before(5000, Backoff(initial=0), 0.5) == 0.0
    assert rest_before(5000, plain, 0.5) == MAX_TIMER_MS / 1000
