"""Reasoning apart from answers, results as JSON, budgets."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.protocol.agents import AgentResult, Budget, ThinkSplitter, Usage, agent_result_to_json


def split(*deltas: str) -> tuple[list[str], ThinkSplitter]:
    splitter = ThinkSplitter()
    shown = [splitter.split(delta) for delta in deltas]
    return [*shown, splitter.flush()], splitter


@pytest.mark.case("agents", 34)
def test_a_closing_tag_before_any_other_makes_reasoning_of_what_came() -> None:
    _, splitter = split("a</think>b<think>c</think>d")
    assert (splitter.content, splitter.thinking) == ("bd", "ac")


@pytest.mark.case("agents", 34)
def test_what_may_become_a_tag_is_held_back() -> None:
    shown, splitter = split("x <thin", "ker>")
    assert shown == ["x ", "<thinker>", ""]
    assert splitter.content == "x <thinker>"


@pytest.mark.parametrize(
    ("text", "content", "thinking"),
    [
        ("<think>a", "", "a"),
        ("<think>a</thi", "", "a</thi"),
        ("a<thi", "a<thi", ""),
        ("<think>a<think>b</think>c", "c", "a<think>b"),
        ("<think>a</think>b</think>c", "b</think>c", "a"),
        ("", "", ""),
    ],
)
@given(data=st.data())
def test_a_text_is_split_alike_however_it_is_cut(text: str, content: str, thinking: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    _, splitter = split(*pieces)
    assert (splitter.content, splitter.thinking) == (content, thinking)


class Raising:
    @property
    def content(self) -> str:
        raise RuntimeError("no")


SOUND: dict[str, Any] = {"content": "d", "partial": False}


@pytest.mark.case("agents", 35)
@pytest.mark.parametrize(
    ("value", "json"),
    [
        (
            {**SOUND, "usage": {"prompt": 1.5, "completion": -1, "total": 0, "x": 1}, "extra": 1},
            {**SOUND, "usage": {"prompt": 1.5, "completion": -1, "total": 0}},
        ),
        ({**SOUND, "partial": 0}, None),
        ({**SOUND, "thinking": None}, None),
        ({**SOUND, "content": 7}, None),
        ({**SOUND, "usage": {"prompt": 1, "completion": 1}}, None),
        ({**SOUND, "usage": {"prompt": True, "completion": 1, "total": 1}}, None),
        ({**SOUND, "usage": {"prompt": math.inf, "completion": 1, "total": 1}}, None),
        ({**SOUND, "usage": None}, None),
        (AgentResult(content="d", partial=False), SOUND),
        (
            AgentResult(content="d", thinking="t", usage=Usage(1, 2, 3), partial=False),
            {**SOUND, "thinking": "t", "usage": {"prompt": 1, "completion": 2, "total": 3}},
        ),
        (Raising(), None),
        (None, None),
    ],
)
def test_a_result_is_plain_json_or_none(value: object, json: Any) -> None:
    assert agent_result_to_json(value) == json


def test_a_budget_calls_who_started_it_once_it_is_exhausted() -> None:
    calls: list[str] = []
    parent = Budget(total=10)
    budget = Budget(completion=5, parent=parent)
    close = budget.start(lambda: calls.append("closed"))
    budget.start(lambda: calls.append("own"))
    close()
    close()
    budget.consume(Usage(9, 0, 9))
    assert (budget.exhausted, calls) == (False, [])
    budget.consume(Usage(0, 1, 1))
    assert (budget.exhausted, calls) == (True, ["own"])
    budget.consume(Usage(0, 1, 1))
    assert calls == ["own"]
    budget.start(lambda: calls.append("late"))
    assert calls == ["own", "late"]
