"""Lineages: what is one, what extends it, and whom it lets in."""

from __future__ import annotations

from typing import Any

import pytest

from greenroom.protocol.errors import ToolError
from greenroom.protocol.lineage import (
    MAX_WORKFLOW_CHAIN,
    enter_agent,
    enter_workflow,
    extend_lineage,
    is_workflow_lineage,
    lineage_depth,
    normalize_lineage,
    tag_agent,
    tag_workflow,
)


def chain(pairs: int) -> tuple[str, ...]:
    """So many workflows, each with an agent beneath it."""
    return tuple(tag for at in range(pairs) for tag in (f"workflow:w{at}", f"agent:g{at}"))


@pytest.mark.case("workflows", 50)
@pytest.mark.parametrize("lineage", [(), ("workflow:a",), ("workflow:a", "agent:b"), ["workflow:a", "agent:a"]])
def test_workflows_and_agents_in_turn_are_a_lineage(lineage: Any) -> None:
    assert is_workflow_lineage(lineage)
    assert normalize_lineage(lineage) == tuple(lineage)


class Text(str):
    """Text of a kind of its own, which may answer whatever it likes."""


@pytest.mark.case("workflows", 50)
@pytest.mark.parametrize(
    "lineage",
    [
        ("agent:a",),
        ("workflow:",),
        ("workflow:a", "workflow:b"),
        ("workflow:a", "agent:b", "workflow:a"),
        "workflow:a",
        ("workflow:a", 1),
        ("Workflow:a",),
        (Text("workflow:a"),),
        None,
        {"workflow:a"},
        {"0": "workflow:a"},
    ],
)
def test_anything_else_is_none_and_is_refused(lineage: Any) -> None:
    assert not is_workflow_lineage(lineage)
    with pytest.raises(ToolError) as refused:
        normalize_lineage(lineage)
    assert refused.value.code == "TOOL"


@pytest.mark.case("workflows", 50)
def test_depth_counts_the_workflows_beneath_the_outermost() -> None:
    assert lineage_depth(()) == 0
    assert lineage_depth(("workflow:w",)) == 0
    assert lineage_depth(("workflow:w", "agent:a")) == 0
    assert lineage_depth(("workflow:w", "agent:a", "workflow:v")) == 1
    assert lineage_depth(chain(9)) == 8


def test_what_comes_back_is_a_tuple_of_its_own() -> None:
    given = ["workflow:a"]
    read = normalize_lineage(given)
    given.append("agent:b")
    assert read == ("workflow:a",)


def test_extending_takes_only_the_tag_that_is_due() -> None:
    assert extend_lineage((), tag_workflow("a:b")) == ("workflow:a:b",)
    assert extend_lineage(["workflow:a"], tag_agent("a")) == ("workflow:a", "agent:a")
    for lineage, tag in [(("workflow:a",), "workflow:b"), (("workflow:a",), ""), (("agent:x",), "workflow:a")]:
        with pytest.raises(ToolError):
            extend_lineage(lineage, tag)


def test_an_ending_of_the_wrong_kind_is_refused_and_the_empty_one_fits_everywhere() -> None:
    assert normalize_lineage((), ending="agent") == ()
    assert normalize_lineage(("workflow:a",), ending="workflow") == ("workflow:a",)
    with pytest.raises(ToolError, match="must end with one of kind 'agent'") as refused:
        normalize_lineage(("workflow:a",), ending="agent")
    assert refused.value.code == "TOOL"


def test_eight_workflows_may_be_nested_and_the_ninth_is_refused() -> None:
    inside = enter_workflow(chain(MAX_WORKFLOW_CHAIN), "target")
    assert lineage_depth(inside) == MAX_WORKFLOW_CHAIN
    with pytest.raises(ToolError, match="'target' would run 9 workflows deep, and 8 are allowed") as refused:
        enter_workflow(chain(9), "target")
    assert refused.value.code == "DEPTH"
    assert refused.value.context == {"workflow": "target", "depth": 9, "max": 8}


def test_a_workflow_does_not_run_inside_itself() -> None:
    with pytest.raises(ToolError, match="workflow:w > agent:z") as refused:
        enter_workflow(("workflow:w", "agent:z"), "w")
    assert refused.value.code == "DEPTH"
    assert refused.value.context == {"workflow": "w", "lineage": ["workflow:w", "agent:z"]}


def test_an_agent_begins_the_lineage_of_the_workflow_that_calls_it() -> None:
    assert enter_agent((), "x", "w") == ("workflow:w", "agent:x")
    assert enter_agent(("workflow:w",), "w", "w") == ("workflow:w", "agent:w")


def test_an_agent_runs_nine_workflows_deep_and_not_ten() -> None:
    assert enter_agent((*chain(8), "workflow:w8"), "z", "w8")[-1] == "agent:z"
    with pytest.raises(ToolError) as refused:
        enter_agent((*chain(9), "workflow:w9"), "z", "w9")
    assert refused.value.code == "DEPTH"
    assert refused.value.context == {"agent": "z", "depth": 9, "max": 8}


@pytest.mark.parametrize(
    ("lineage", "agent", "workflow"),
    [(("workflow:w",), "x", "other"), (("workflow:v", "agent:x", "workflow:w"), "x", "w")],
)
def test_an_agent_is_refused_elsewhere_and_beneath_itself(lineage: Any, agent: str, workflow: str) -> None:
    with pytest.raises(ToolError) as refused:
        enter_agent(lineage, agent, workflow)
    assert refused.value.code == "DEPTH"
    assert refused.value.context["lineage"] == list(lineage)
