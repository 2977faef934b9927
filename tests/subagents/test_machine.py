"""Random families of agents that begin, tell, stop and end each other, against a ledger of what was told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from greenroom.actors.agent import Agent
from greenroom.actors.session import Session
from greenroom.actors.subagent import ChildSpec
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.agents import ChildRequest, ChildResult, InboxMessage, ProviderResult
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.tools import ToolCall
from greenroom.protocol.tree import ActorSnapshot
from greenroom.runtime.context import current_actor
from tests.stress.driver import Driver, Spawned
from tests.stress.puppets import Provider, Puppet

LIMIT = 3
"""How many messages an inbox holds: so few that it is full now and then."""
CHILDREN = 3

WHICH = st.integers(0, 99)
KINDS = st.sampled_from(["followup", "steer", "inject"])


class Directing:
    """Builds agents that say what they are told to, and writes down what the bus tells."""

    capabilities = frozenset({"session"})

    def __init__(self, runtime: Runtime) -> None:
        self.in_flight = 0
        self.ready: dict[str, Puppet] = {}
        """Those whose model is asked, by the agent's id."""
        self.inserted: dict[str, tuple[str, InboxMessage]] = {}
        """The path of the agent and the message, by the message's id."""
        self.gone: Counter[str] = Counter()
        """How often a message was claimed or discarded."""
        self.read: Counter[str] = Counter()
        """How often it was claimed."""
        self.claimed: dict[str, list[str]] = {}
        """The texts, by the agent's path."""
        self.starts: list[Any] = []
        self.ends: list[Any] = []
        bus = runtime.bus
        bus.on("inbox/inserted", lambda told: self.inserted.setdefault(told.message.id, (told.agent, told.message)))
        bus.on("inbox/claimed", self._claim)
        bus.on("inbox/discarded", lambda told: self.gone.update(message.id for message in told.messages))
        bus.on("subagent/start", self.starts.append)
        bus.on("subagent/end", self.ends.append)

    def _claim(self, told: Any) -> None:
        for count in (self.gone, self.read):
            count.update(message.id for message in told.messages)
        self.claimed.setdefault(told.agent, []).extend(message.text for message in told.messages)

    def make(self, id: str, session: Session | None = None) -> Agent:
        return Agent(Provider(self, id), id=id, inbox_limit=LIMIT, limit=4, session=session)

    def build(self, spec: ChildSpec) -> Agent:
        return self.make(spec.id, spec.session)

    async def told(self, name: str, outcomes: list[str]) -> ProviderResult:
        assert name not in self.ready, f"{name} runs twice"
        actor = current_actor()
        assert actor is not None
        puppet = self.ready[name] = Puppet(actor.ref.path, name, outcomes)
        try:
            return await puppet.wait()
        finally:
            del self.ready[name]


class Families(RuleBasedStateMachine):
    """One root and whoever is begun beneath it. After each step everything has come to rest."""

    stored: ClassVar[bool] = False
    """The root has a session, and so have those beneath it that go on by themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.runtime = self.driver.enter(open_runtime())
        self.subagents = self.runtime.subagents
        self.subagents.max_children = CHILDREN
        self.agents: dict[str, Agent] = {}
        """All that were ever begun, the root first."""
        self.parents: dict[str, str] = {}
        self.single: dict[str, Spawned[ChildResult]] = {}
        self.texts = iter(range(1_000_000))

        async def prepare() -> Directing:
            directing = Directing(self.runtime)
            self.subagents.add("puppet", directing)
            session = await self.runtime.sessions.open("planner") if self.stored else None
            self.agents["planner"] = self.runtime.agents.add(directing.make("planner", session))
            return directing

        self.directing = self.driver.call(prepare)

    def teardown(self) -> None:
        try:
            self.do(lambda: self.runtime.agents.remove("planner"))
            self.everything_has_its_place()
            assert self.living() == []
            assert self.directing.in_flight == 0
            assert max(self.directing.read.values(), default=0) <= 1, "a message was read twice"
            assert set(self.directing.inserted) == set(self.directing.gone), (
                "what was accepted is neither read nor gone"
            )
            pairs = [[each.run_id for each in told] for told in (self.directing.starts, self.directing.ends)]
            assert sorted(pairs[0]) == sorted(pairs[1])
            assert all(run.done for run in self.single.values()), "somebody waits for ever"
            assert self.runtime.snapshot().waits == ()
        finally:
            self.driver.close()

    # ---------------------------------------------------------------- what there is

    def living(self) -> list[Agent]:
        return [agent for agent in self.agents.values() if agent.ref.alive]

    def one(self, which: int) -> Agent:
        living = self.living()
        return living[which % len(living)]

    def text(self) -> str:
        return f"message {next(self.texts)}"

    def do(self, what: Callable[[], Any]) -> Any:
        """Do it within the run. None if it is refused."""

        async def carry_out() -> Any:
            try:
                done = what()
                return await done if hasattr(done, "__await__") else done
            except GreenroomError:
                return None

        return self.driver.call(carry_out)

    def born(self, parent: Agent) -> None:
        for info in self.subagents.children("descendants"):
            if info.id not in self.agents:
                agent = self.subagents.agent(info.id)
                assert agent is not None
                self.agents[info.id], self.parents[info.id] = agent, parent.id

    # ---------------------------------------------------------------- what happens

    @precondition(lambda self: self.living())
    @rule(which=WHICH)
    def begin(self, which: int) -> None:
        parent, depth = self.one(which), len(self.directing.starts)
        request = ChildRequest(description="a task", prompt=self.text())
        accepted = self.do(lambda: self.subagents.start(request, parent=parent))
        assert (accepted is None) == (len(self.directing.starts) == depth)
        self.born(parent)

    @precondition(lambda self: self.living())
    @rule(which=WHICH)
    def begin_one_task(self, which: int) -> None:
        parent, before = self.one(which), set(self.agents)
        request = ChildRequest(description="a task", prompt=self.text())
        run = self.driver.spawn(lambda: self.subagents.run(request, parent=parent))
        self.born(parent)
        for id in set(self.agents) - before:
            self.single[id] = run

    @precondition(lambda self: self.directing.ready)
    @rule(which=WHICH, how=st.sampled_from(["say", "fail", "report", "call"]))
    def answer(self, which: int, how: str) -> None:
        ready = list(self.directing.ready.values())
        puppet, text = ready[which % len(ready)], self.text()
        calls = {"report": ToolCall("1", "report", {"output": text}), "call": ToolCall("1", "nothing", {})}
        said = LookupError(text) if how == "fail" else ProviderResult(text, tools=tuple(filter(None, [calls.get(how)])))
        self.do(lambda: puppet.tell(said))

    @precondition(lambda self: self.living())
    @rule(which=WHICH, kind=KINDS)
    def put_in(self, which: int, kind: str) -> None:
        agent, text = self.one(which), self.text()
        full = len(agent.inbox.messages) >= LIMIT
        assert (self.do(lambda: getattr(agent.inbox, kind)(text)) is None) == full

    @precondition(lambda self: self.living())
    @rule(which=WHICH, by=WHICH)
    def send(self, which: int, by: int) -> None:
        child, parent, text = self.one(which), self.one(by), self.text()
        sent = self.do(lambda: self.subagents.send(child.id, text, parent=parent))
        if sent is not None:
            assert self.parents[child.id] == parent.id
            assert child.id not in self.single

    @precondition(lambda self: self.living())
    @rule(which=WHICH, by=WHICH)
    def interrupt(self, which: int, by: int) -> None:
        child, caller = self.one(which), self.one(by)
        beneath = child.ref.path.startswith(f"{caller.ref.path}/")

        def interrupt() -> bool:
            self.subagents.interrupt(child.id, by=caller)
            return True

        known = child.id == "planner"  # which is no sub-agent, so that nobody can say what it is beneath
        if not known:
            assert (self.do(interrupt) is True) == beneath

    @precondition(lambda self: self.living())
    @rule(which=WHICH, keep=st.booleans())
    def abort(self, which: int, keep: bool) -> None:
        agent = self.one(which)
        self.do(lambda: agent.abort("enough", keep_inbox=keep))

    @precondition(lambda self: self.living())
    @rule(which=WHICH)
    def clear(self, which: int) -> None:
        self.do(self.one(which).inbox.clear)

    @precondition(lambda self: len(self.living()) > 1)
    @rule(which=WHICH)
    def stop(self, which: int) -> None:
        living = self.living()
        agent = living[1 + which % (len(living) - 1)]
        self.do(agent.ref.stop)
        assert not agent.ref.alive

    # ---------------------------------------------------------------- what holds

    @invariant()
    def everything_has_its_place(self) -> None:
        living = self.living()
        assert sorted(_agents(self.runtime.snapshot().root)) == sorted(agent.ref.path for agent in living)
        for agent in living:
            assert agent.id == "planner" or self.agents[self.parents[agent.id]].ref.alive, "it has outlived its parent"
        assert self.directing.in_flight == len(self.directing.ready)
        assert {agent.id for agent in living if agent.status == "running"} == set(self.directing.ready)

    @invariant()
    def nothing_waits_for_ever(self) -> None:
        for agent in self.living():
            assert agent.status == "running" or not agent.inbox.wakes, f"{agent.id} sleeps over its inbox"
        for id, run in self.single.items():
            assert run.done is not self.agents[id].ref.alive

    @invariant()
    def each_message_is_read_or_gone_once(self) -> None:
        waiting = Counter(message.id for agent in self.agents.values() for message in agent.inbox.messages)
        assert waiting + self.directing.gone == Counter(list(self.directing.inserted))
        for agent in self.agents.values():
            claimed = self.directing.claimed.get(agent.ref.path, [])
            assert _texts(agent)[len(_texts(agent)) - len(claimed) :] == claimed

    @invariant()
    def who_has_finished_has_told_so(self) -> None:
        live = {info.id: info for info in self.subagents.children("descendants")}
        told = Counter(
            (path, message.text.split()[2])
            for path, message in self.directing.inserted.values()
            if message.text.startswith("The sub-agent") and "reports:" not in message.text
        )
        for id, info in live.items():
            if id in self.single:
                continue
            agent, parent = self.agents[id], self.agents[self.parents[id]]
            rests = agent.status != "running" and all(
                live[each].status == "idle" for each, above in self.parents.items() if above == id and each in live
            )
            if info.status == "idle":
                assert rests
            elif rests:
                assert len(parent.inbox.messages) == LIMIT, f"{id} has finished, and its parent knows nothing of it"
            ended = sum(each.child == id for each in self.directing.ends)
            assert told[parent.ref.path, id] == ended


class StoredFamilies(Families):
    """The same where those that have ended can go on."""

    stored = True

    @precondition(lambda self: any(not agent.ref.alive for agent in self.agents.values()))
    @rule(which=WHICH)
    def go_on(self, which: int) -> None:
        """Who is given more is built anew: another agent, of the same name."""
        ended = [id for id, agent in self.agents.items() if not agent.ref.alive and id not in self.single]
        if not ended:
            return
        id, text = ended[which % len(ended)], self.text()
        parent = self.agents[self.parents[id]]
        sent = self.do(lambda: self.subagents.send(id, text, parent=parent))
        again = self.subagents.agent(id)
        assert (sent is None) == (again is None)
        if again is not None:
            assert parent.ref.alive
            self.agents[id] = again

    @invariant()
    def each_message_is_read_or_gone_once(self) -> None:
        """What one that ends has not read is read by the one that goes on, or by nobody."""
        assert max(self.directing.read.values(), default=0) <= 1
        for agent in self.living():
            claimed = self.directing.claimed.get(agent.ref.path, [])
            assert _texts(agent)[len(_texts(agent)) - len(claimed) :] == claimed

    @invariant()
    def who_has_finished_has_told_so(self) -> None:
        """As above, but for the counting: an end that nobody was there to be told of was not told."""
        for info in self.subagents.children("descendants"):
            agent = self.agents[info.id]
            rests = agent.status != "running" and all(
                each.status == "idle" for each in self.subagents.children(by=agent)
            )
            if info.id not in self.single and (info.status == "idle") != rests:
                above = self.agents[self.parents[info.id]]
                assert rests
                assert above.inbox.full, f"{info.id} has finished, and its parent knows nothing of it"
                assert above.status == "running", f"{above.id} sleeps over an inbox that is full"


def _texts(agent: Agent) -> list[str]:
    return [each.content for each in agent.conversation.messages() if each.role == "user"]


def _agents(actor: ActorSnapshot) -> list[str]:
    own = [actor.path] if actor.kind == "agent" else []
    return [*own, *(path for child in actor.children for path in _agents(child))]


@pytest.mark.parametrize("families", [Families, StoredFamilies])
def test_whatever_happens_each_message_is_read_once_and_nothing_outlives_its_parent(families: type[Families]) -> None:
    run_state_machine_as_test(
        families, settings=hypothesis.settings(max_examples=30, stateful_step_count=30, database=None)
    )
