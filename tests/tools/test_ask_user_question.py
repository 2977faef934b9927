"""`ask_user_question`: a few questions as one form at the terminal of a person, and what becomes of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from greenroom.actors.agent import Agent
from greenroom.actors.providers.scripted import ScriptedProvider
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.toolbox import ask_user_question_tool
from greenroom.protocol.agents import MessageInput, ProviderResult
from greenroom.protocol.errors import GreenroomError, ToolDeadlock
from greenroom.protocol.forms import CheckboxField, SelectField, TextField
from greenroom.protocol.schemas import advertising_faults
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.messages import Request
from greenroom.runtime.tools import Tool
from tests.agents.conftest import Stage, calling
from tests.cancelling import Doomed, at_every_step
from tests.delegation.conftest import DONE, delegating, handing, planner

TRACK = {
    "id": "track",
    "question": "Which track is it for?",
    "header": "Release",
    "options": [{"label": "stable"}, {"label": "beta", "description": "for testers"}],
}
PARTS = {"id": "parts", "question": "Which parts?", "options": [{"label": "a"}, {"label": "b"}], "multi_select": True}
WHY = {"id": "why", "question": "Why now?"}


class Booth:
    """Somebody who asks `ann`."""

    def __init__(self, runtime: Runtime, nursery: trio.Nursery) -> None:
        self.runtime = runtime
        self.nursery = nursery
        self.tool = ask_user_question_tool(runtime.terminals, "ann")
        self.answered: list[Any] = []
        self.errors: list[GreenroomError] = []

    async def ask(self, *questions: Any, tool: Tool | None = None) -> None:
        async def run() -> None:
            try:
                self.answered.append(await (tool or self.tool).execute({"questions": list(questions)}))
            except GreenroomError as error:
                json.dumps(error.encode())
                self.errors.append(error)

        self.nursery.start_soon(run)
        await wait_all_tasks_blocked()

    async def answer(self, **values: Any) -> Any:
        (record,) = self.runtime.terminals.pending("ann")
        result = await self.runtime.terminals.answer(
            "ann", record.id, {key.replace("_", "-"): values[key] for key in values}
        )
        await wait_all_tasks_blocked()
        return result

    @property
    def codes(self) -> list[str]:
        return [error.code for error in self.errors]


@pytest.fixture
async def booth() -> AsyncIterator[Booth]:
    async with open_runtime() as runtime, trio.open_nursery() as nursery:
        runtime.terminals.add("ann")
        yield Booth(runtime, nursery)
        nursery.cancel_scope.cancel()


async def test_several_questions_are_one_form_and_each_has_its_answer(booth: Booth) -> None:
    await booth.ask(TRACK, PARTS, WHY)
    assert (await booth.answer(question1="beta", question2=["b", "a"], question3_custom="it is time")).success
    assert booth.answered == [
        {
            "answers": [
                {"id": "track", "selected": ["beta"]},
                {"id": "parts", "selected": ["b", "a"]},
                {"id": "why", "selected": [], "custom": "it is time"},
            ]
        }
    ]
    told = booth.tool.handling.rendered({}, booth.answered[0])
    assert told == "track: beta\nparts: b, a\nwhy: it is time"


async def test_a_question_is_shown_with_its_options_and_room_for_other_words(booth: Booth) -> None:
    await booth.ask(TRACK, PARTS, WHY)
    (record,) = booth.runtime.terminals.pending("ann")
    kinds = [(type(field), field.label) for field in record.schema.fields]
    assert kinds == [
        (SelectField, "Which track is it for?"),
        (TextField, "Or in your own words"),
        (CheckboxField, "Which parts?"),
        (TextField, "Or in your own words"),
        (TextField, "Why now?"),
    ]
    assert [group.label for group in record.schema.groups or ()] == ["Release"]


async def test_its_schema_is_one_for_models(booth: Booth) -> None:
    assert booth.tool.parameters is not None
    assert advertising_faults(booth.tool.parameters) == []


async def test_what_is_on_offer_may_be_answered_in_other_words(booth: Booth) -> None:
    await booth.ask(TRACK, PARTS)
    assert (await booth.answer(question1_custom="none of them", question2=["a"], question2_custom="and c")).success
    assert booth.answered[0]["answers"] == [
        {"id": "track", "selected": [], "custom": "none of them"},
        {"id": "parts", "selected": ["a"], "custom": "and c"},
    ]


async def test_no_question_is_passed_over(booth: Booth) -> None:
    await booth.ask(TRACK, PARTS, WHY)
    result = await booth.answer(question1_custom="  ")
    assert {error.field for error in result.error.errors} == {"question1", "question2", "question3-custom"}
    assert not booth.answered


@pytest.mark.parametrize(
    ("questions", "code"),
    [
        ([], "EMPTY_QUESTIONS"),
        ([WHY, WHY], "INVALID_ARGS"),
        ([{**TRACK, "options": [{"label": "a"}, {"label": "a"}]}], "INVALID_ARGS"),
        ([{**WHY, "id": str(number)} for number in range(600)], "INVALID_ARGS"),
        ([{"id": "a", "question": "?" * 70_000}], "INVALID_ARGS"),
        ([{"id": "", "question": "?"}], "TOOL"),
        ([{"id": "a"}], "TOOL"),
    ],
)
async def test_what_cannot_be_asked_is_refused_and_nobody_asked(booth: Booth, questions: list[Any], code: str) -> None:
    await booth.ask(*questions)
    assert booth.codes == [code]
    assert booth.runtime.terminals.pending() == []


async def test_where_nobody_is_there_to_ask_the_error_says_who_is(booth: Booth) -> None:
    await booth.ask(WHY, tool=ask_user_question_tool(booth.runtime.terminals, "bob"))
    (error,) = booth.errors
    assert (error.code, error.context) == ("NO_PROVIDER", {"to": "bob", "known": ["ann"]})
    assert "ann" in error.message
    booth.runtime.terminals.add("full", cap=0)
    await booth.ask(WHY, tool=ask_user_question_tool(booth.runtime.terminals, "full"))
    assert booth.codes == ["NO_PROVIDER", "NO_PROVIDER"]


async def test_a_question_that_nobody_answers_is_aborted_with_the_reason(
    booth: Booth, autojump_clock: MockClock
) -> None:
    await booth.ask(WHY, tool=ask_user_question_tool(booth.runtime.terminals, "ann", timeout=5))
    await trio.sleep(5)
    await booth.ask(WHY)
    await booth.runtime.terminals.remove("ann")
    await wait_all_tasks_blocked()
    assert [(error.code, error.context["reason"]) for error in booth.errors] == [
        ("ASK_ABORTED", "timeout"),
        ("ASK_ABORTED", "removed"),
    ]


async def test_a_question_that_would_close_a_circle_is_refused(booth: Booth) -> None:
    await booth.ask(WHY, tool=ask_user_question_tool(booth.runtime.terminals, "ann", from_="ann"))
    (error,) = booth.errors
    assert isinstance(error, ToolDeadlock)


class Dying(Actor):
    """Asks when it is told that it is being stopped."""

    def __init__(self, tool: Tool) -> None:
        super().__init__()
        self.tool = tool
        self.codes: list[str] = []
        self.go = trio.Event()

    class Wait(Request[None], frozen=True):
        pass

    @handles(Wait)
    async def wait(self, message: Wait) -> None:
        await self.go.wait()
        try:
            await self.tool.execute({"questions": [WHY]})
        except GreenroomError as error:
            self.codes.append(error.code)


async def test_an_agent_that_is_being_stopped_asks_nobody(booth: Booth) -> None:
    actor = Dying(booth.tool)
    ref = booth.runtime.spawn(actor, "dying")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ref.ask, Dying.Wait())
        await wait_all_tasks_blocked()
        nursery.start_soon(lambda: ref.stop(grace=5))
        await wait_all_tasks_blocked()
        actor.go.set()
    assert actor.codes == ["CALLER_NOT_LIVE"]
    assert booth.runtime.terminals.pending() == []


async def test_a_cancelled_question_leaves_every_screen() -> None:
    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime:
            runtime.terminals.add("ann")
            tool = ask_user_question_tool(runtime.terminals, "ann")
            with trio.move_on_after(0):
                await doomed(tool.execute, {"questions": [WHY]})
            await wait_all_tasks_blocked()
            assert runtime.terminals.pending() == []
            assert runtime.snapshot().waits == ()

    await at_every_step(scenario)


# -------------------------------------------------------------------- agents that work for others


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with open_runtime() as runtime:
        runtime.terminals.add("ann")
        yield Stage(runtime)


def asking(stage: Stage, **options: Any) -> Agent:
    """A planner that gives its one task to a writer, who asks."""
    tool = ask_user_question_tool(stage.runtime.terminals, "ann", **options)
    writer = ScriptedProvider([calling("", "ask_user_question", questions=[WHY]), DONE])
    return planner(stage, delegating({"writer": writer}, tool, provider="writer"), handing(), DONE)


async def test_an_agent_that_works_for_another_asks_nobody(stage: Stage) -> None:
    said: list[str] = []
    agent = asking(stage)
    agent.emitter.on("progress", lambda progress: said.append(progress.event))
    assert (await agent.generate()).content == "done"
    assert stage.runtime.terminals.pending() == []
    assert said[-1] == "finished", "its question was refused, and it went on"


async def test_where_it_may_the_person_is_told_who_asks(stage: Stage, nursery: trio.Nursery) -> None:
    agent = asking(stage, delegated=True)
    nursery.start_soon(agent.generate)
    await wait_all_tasks_blocked()
    (record,) = stage.runtime.terminals.pending("ann")
    assert "/agents/planner/delegations/1" in str(record.schema.help)
    await stage.runtime.terminals.answer("ann", record.id, {"question1-custom": "because"})


async def test_the_root_may_ask(stage: Stage, nursery: trio.Nursery) -> None:
    tool = ask_user_question_tool(stage.runtime.terminals, "ann")
    provider = ScriptedProvider([calling("", "ask_user_question", questions=[WHY]), ProviderResult("I see.")])
    agent = stage.runtime.agents.add(Agent(provider, id="root", tools=[tool]))
    agent.context.messages.add(MessageInput("user", "Go."))
    nursery.start_soon(agent.generate)
    await wait_all_tasks_blocked()
    (record,) = stage.runtime.terminals.pending("ann")
    assert not record.schema.help
    await stage.runtime.terminals.answer("ann", record.id, {"question1-custom": "because"})
    await wait_all_tasks_blocked()
    assert [each.content for each in agent.context.messages.view() if each.role == "tool"] == ["why: because"]
