"""Calls that need approval, of an agent with a session: one prompt and one run a call, also over a reopening."""

from __future__ import annotations

import pytest
import trio

from greenroom.actors.agent import Agent
from greenroom.protocol.agents import ProviderResult
from greenroom.protocol.errors import ActorError
from greenroom.protocol.tools import ToolCall
from greenroom.runtime.bus import Next
from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.verdicts import Ask, Verdict
from greenroom.runtime.tools import Tool
from tests.clock import settle
from tests.sessions.conftest import Desk, session_of, shown, told

BOTH = ProviderResult("", tools=(ToolCall("1", "gated", {"key": "t1"}), ToolCall("1", "gated", {"key": "t2"})))
SECOND = ProviderResult("", tools=(ToolCall("1", "gated", {"key": "t2"}),))
DONE = ProviderResult("done")


class Gate:
    """Asks for every call, and lets the test answer."""

    def __init__(self, desk: Desk) -> None:
        self.prompts: list[ApprovalRequest] = []
        self.ran: list[str] = []
        self._answers: dict[str, trio.Event] = {}
        self._decisions: dict[str, Decision] = {}
        desk.runtime.bus.on("tools/pre-execute", self._ask)
        desk.runtime.bus.on("approval/request", self._decide)
        self.tool = Tool("gated", self._run)

    async def answer(self, kind: str) -> None:
        """Decide the prompt that is open."""
        request = self.prompts[-1]
        self._decisions[request.id] = Decision(kind, person=True)  # type: ignore[arg-type]
        self._answers[request.id].set()
        await settle()

    def _run(self, arguments: dict[str, str]) -> str:
        self.ran.append(arguments["key"])
        return "opened"

    async def _ask(self, call: Invocation, next: Next[Verdict]) -> Verdict:
        return Ask()

    async def _decide(self, request: ApprovalRequest, next: Next[Decision]) -> Decision:
        self.prompts.append(request)
        self._answers[request.id] = trio.Event()
        await self._answers[request.id].wait()
        return self._decisions[request.id]


@pytest.mark.case("reports/pipeline", 4)
@pytest.mark.parametrize(("second", "ran"), [("allowed-once", ["t1", "t2"]), ("rejected", ["t1"])])
async def test_two_gated_calls_have_a_prompt_each_and_run_once_each_if_it_was_granted(
    desk: Desk, second: str, ran: list[str]
) -> None:
    gate = Gate(desk)
    agent = await desk.agent(BOTH, DONE, tools=[gate.tool])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.generate)
        await settle()
        await gate.answer("allowed-once")
        await gate.answer(second)
    assert len({request.id for request in gate.prompts}) == len(gate.prompts) == 2
    assert gate.ran == ran
    assert shown(agent).count("approval/asked") == 2
    assert shown(agent)[-1] == "turn/end completed"


@pytest.mark.case("reports/pipeline", 4)
async def test_a_grant_does_not_outlive_the_session_that_it_was_given_in(desk: Desk) -> None:
    gate = Gate(desk)
    agent = await desk.agent(BOTH, tools=[gate.tool])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_generate, agent)
        await settle()
        await gate.answer("allowed-once")
        assert (gate.ran, len(gate.prompts)) == (["t1"], 2)
        agent = await desk.again(agent, SECOND, DONE, tools=[gate.tool])
    assert gate.ran == ["t1"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.generate)
        await settle()
        assert [content for role, content in told(agent) if role == "tool"] == [
            '"opened"',
            "Error: The call was stopped before it ran.",
        ]
        assert (gate.ran, len(gate.prompts)) == (["t1"], 3), "it asks anew"
        await gate.answer("allowed-once")
    assert (gate.ran, len(gate.prompts)) == (["t1", "t2"], 3), "nothing loops"
    assert session_of(agent).order.turn is None


async def test_what_a_session_says_about_asking_holds_for_its_agent_also_later(desk: Desk) -> None:
    gate = Gate(desk)
    agent = await desk.agent(SECOND, DONE, tools=[gate.tool])
    session_of(agent).append("approval/policy", {"mode": "never"})
    await agent.generate()
    agent = await desk.again(agent, SECOND, DONE, tools=[gate.tool])
    await agent.generate()
    assert (gate.prompts, gate.ran) == ([], [])
    assert shown(agent).count("decided rejected") == 2
    desk.runtime.pipeline.approvals.mode = "never"
    session_of(agent).append("approval/policy", {"mode": "ask"})
    async with trio.open_nursery() as nursery:
        agent = await desk.again(agent, SECOND, DONE, tools=[gate.tool])
        nursery.start_soon(agent.generate)
        await settle()
        await gate.answer("allowed-once")
    assert (len(gate.prompts), gate.ran) == (1, ["t2"])
    other = await desk.agent(SECOND, DONE, id="b", tools=[gate.tool])
    await other.generate()
    assert len(gate.prompts) == 1, "what holds for the runtime holds for the others"


async def _generate(agent: Agent) -> None:
    with pytest.raises(ActorError):
        await agent.generate()
