"""Lineage in the context and on actors: what is beneath whom, and when one more is refused."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from greenroom.protocol.errors import ToolError
from greenroom.runtime.lineage import Lineage, beneath, current_lineage
from greenroom.runtime.tree import run_tree
from tests.kernel.cast import Call, Do, Player, quiet


def refused(lineage: Lineage, tag: str) -> ToolError:
    with pytest.raises(ToolError) as raised:
        lineage.extended(tag)
    return raised.value


def nested(kind: str, count: int, lineage: Lineage | None = None) -> Lineage:
    lineage = lineage or Lineage()
    for number in range(count):
        lineage = lineage.extended(f"{kind}:{kind}-{number}")
    return lineage


def test_nobody_is_above_at_first() -> None:
    assert current_lineage() == Lineage((), max_chain=8, max_delegations=8)


def test_a_block_is_beneath_its_tag_and_what_comes_after_it_is_not() -> None:
    with beneath("workflow:release"):
        with beneath("agent:writer") as inner:
            assert inner == current_lineage()
            assert inner.tags == ("workflow:release", "agent:writer")
        assert current_lineage().tags == ("workflow:release",)
    assert current_lineage().tags == ()


def test_an_agent_may_stand_beneath_an_agent() -> None:
    assert nested("agent", 3).tags == ("agent:agent-0", "agent:agent-1", "agent:agent-2")


def test_a_workflow_and_an_agent_may_share_an_id_and_case_counts() -> None:
    lineage = Lineage().extended("workflow:x").extended("agent:x").extended("agent:X")
    assert lineage.tags == ("workflow:x", "agent:x", "agent:X")


def test_who_is_above_already_is_refused_before_the_block_begins() -> None:
    with beneath("agent:writer"), beneath("workflow:release"):
        with pytest.raises(ToolError, match="'agent:writer' is at work already above") as raised:
            with beneath("agent:writer"):
                raise AssertionError("it has begun")
        assert current_lineage().tags == ("agent:writer", "workflow:release")
    assert raised.value.code == "DEPTH"
    assert raised.value.context == {"tag": "agent:writer", "lineage": ["agent:writer", "workflow:release"]}


@pytest.mark.parametrize("tag", ["", "writer", "agent", "agent:", "Agent:writer", "person:ann"])
def test_what_is_no_tag_is_refused(tag: str) -> None:
    assert refused(Lineage(), tag).code == "TOOL"


def test_eight_workflows_may_be_nested_beneath_the_outermost() -> None:
    lineage = nested("workflow", 9)
    assert lineage.chain == 8
    error = refused(lineage, "workflow:one-more")
    assert (error.code, error.context) == ("DEPTH", {"tag": "workflow:one-more", "depth": 9, "max": 8})
    assert lineage.extended("agent:a").delegations == 1


def test_eight_agents_may_be_nested_beneath_the_root_whatever_that_is() -> None:
    for root, most in (("agent:root", 8), ("workflow:root", 8)):
        lineage = nested("agent", most, Lineage().extended(root))
        assert lineage.delegations == 8
        assert refused(lineage, "agent:one-more").context == {"tag": "agent:one-more", "depth": 9, "max": 8}
        lineage.extended("workflow:w")


def test_each_bound_counts_its_own_kind() -> None:
    lineage = Lineage().extended("agent:root").bounded(max_delegations=0)
    assert refused(lineage, "agent:a").context["max"] == 0
    inside = nested("workflow", 9, lineage)
    assert refused(inside, "workflow:one-more").context["max"] == 8


def test_the_smaller_bound_in_force_wins() -> None:
    with beneath("agent:root", max_delegations=2), beneath("agent:a", max_delegations=5), beneath("agent:b"):
        assert current_lineage().max_delegations == 2
        with pytest.raises(ToolError, match="3 agents deep, and 2 are allowed"), beneath("agent:c"):
            pass
    assert current_lineage().max_delegations == 8


def test_a_bound_of_zero_allows_a_root_and_nothing_beneath() -> None:
    with beneath("agent:root", max_delegations=0):
        with pytest.raises(ToolError, match="1 agents deep, and 0 are allowed"), beneath("agent:a"):
            pass


@given(st.lists(st.tuples(st.sampled_from(["workflow", "agent"]), st.integers(0, 12))))
def test_tags_are_unique_and_bounds_hold_whatever_is_tried(tries: list[tuple[str, int]]) -> None:
    lineage = Lineage(max_chain=3, max_delegations=2)
    for kind, number in tries:
        tag = f"{kind}:{number}"
        fits = tag not in lineage.tags and (
            sum(each.startswith("workflow") for each in lineage.tags) < 4
            if kind == "workflow"
            else not lineage.tags or sum(each.startswith("agent") for each in lineage.tags[1:]) < 2
        )
        if fits:
            lineage = lineage.extended(tag)
            assert lineage.tags[-1] == tag
        else:
            assert refused(lineage, tag).code == "DEPTH"


# -------------------------------------------------------------------- in the tree


async def test_tasks_and_actors_that_a_block_starts_are_beneath_its_tag() -> None:
    seen: list[tuple[str, ...]] = []

    async def look() -> None:
        seen.append(current_lineage().tags)

    async with run_tree() as tree, trio.open_nursery() as nursery:
        with beneath("workflow:release"):
            nursery.start_soon(look)
            run = tree.spawn(Player(), "run")
        await quiet()
        assert seen == [("workflow:release",)]
        assert run.lineage.tags == ("workflow:release",)


async def test_an_actor_keeps_its_lineage_whoever_asks_it_and_gives_it_to_its_children() -> None:
    async def spawn(actor: Any) -> Any:
        actor.spawn(Player(), "child")
        return current_lineage().tags

    async with run_tree() as tree:
        with beneath("workflow:release"):
            run = tree.spawn(Player(), "run")
        with beneath("agent:writer"):
            assert await run.ask(Do(spawn)) == ("workflow:release",)
        child = tree.find("/run/child")
        assert await child.ask(Call(lambda _: current_lineage().tags)) == ("workflow:release",)
        assert current_lineage().tags == ()


async def test_the_work_of_an_actor_is_beneath_what_started_it() -> None:
    seen: list[tuple[str, ...]] = []

    async def look() -> None:
        seen.append(current_lineage().tags)

    async with run_tree() as tree:
        agent = Player()
        tree.spawn(agent, "agent")
        await quiet()
        with beneath("workflow:release"):
            agent.start_soon(look)
        agent.start_soon(look)
        await quiet()
    assert sorted(seen) == [(), ("workflow:release",)]


def test_two_lineages_are_joined_with_each_tag_once_and_the_smaller_bounds() -> None:
    place = Lineage(("workflow:w", "agent:a"), max_chain=2)
    caller = Lineage(("agent:a", "agent:b"), max_chain=5, max_delegations=3)
    assert place.joined(caller) == Lineage(("workflow:w", "agent:a", "agent:b"), 2, 3)
    assert place.joined(Lineage()) == place
