"""The sub-agents of one runtime: begun by an agent or a program, given more, stopped and listed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, Literal, final

import trio

from greenroom.actors.agent import Agent, check_input, current_agent, host, party
from greenroom.actors.session import Session, SessionManager
from greenroom.actors.subagent.builders import Builders, Plan
from greenroom.actors.subagent.child import Child, tell
from greenroom.actors.subagent.living import Living
from greenroom.actors.subagent.providers import ChildProvider
from greenroom.actors.subagent.records import Record, Records
from greenroom.protocol.agents import (
    ChildAccepted,
    ChildInfo,
    ChildRequest,
    ChildResult,
    ChildUnreadable,
    MessageInput,
)
from greenroom.protocol.errors import ActorError, SubagentError
from greenroom.protocol.sessions import SubagentDescriptor
from greenroom.runtime.lineage import within
from greenroom.runtime.ref import Ref
from greenroom.runtime.tools import Tool
from greenroom.runtime.tree import Tree

__all__ = ["MAX_CHILDREN", "MAX_DEPTH", "Subagents"]

logger = logging.getLogger("greenroom.subagents")

MAX_DEPTH: Final = 3
"""How deep sub-agents may be nested beneath the root, where nothing else is said."""

MAX_CHILDREN: Final = 16
"""How many continuable sub-agents one agent has at a time, where nothing else is said."""


@final
class Subagents:
    """Sub-agents by id, and who can build them.

    ::

        job = AgentJob(provider="main", messages=(), tools=("read",))
        runtime.subagents.add("reader", SpawnProvider(registry, job))
        request = ChildRequest(description="changes", prompt="List what broke since v1.")
        result = await runtime.subagents.run(request)                    # its whole life, for one task
        accepted = await runtime.subagents.start(request, parent=agent)  # it goes on by itself, and the agent is told

    Each lives at `<its parent's path>/delegations/<number>`, and ends with its parent, before it. An agent that calls
    is the parent; `parent` and `by` name one where a program calls.

    `max_depth` bounds how deep they are nested beneath the root (0: there are none), `max_children` how many of those
    that can be continued an agent has at a time: one more takes the place of the one that has been idle longest.
    `report` makes the tool that each of them has, whatever its provider gives it.
    """

    def __init__(
        self,
        tree: Tree,
        *,
        sessions: SessionManager,
        report: Callable[[Subagents], Tool],
        max_depth: int = MAX_DEPTH,
        max_children: int = MAX_CHILDREN,
    ) -> None:
        self.max_depth = max_depth
        self.max_children = max_children
        self._tree = tree
        self._builders = Builders(tree.bus, report(self))
        self._records = Records(sessions)
        self._living = Living(tree.bus, lambda child: self._records.leave(child.agent.session))

    @property
    def providers(self) -> tuple[str, ...]:
        """The names of those who build them."""
        return self._builders.names

    def add(self, name: str, provider: ChildProvider) -> Callable[[], None]:
        """Let `provider` build sub-agents under that name; what comes back ends that, and may be called again.

        Raises `SeamError` DUPLICATE_PROVIDER for a name that is taken.
        """
        return self._builders.add(name, provider)

    # ---------------------------------------------------------------- beginning

    async def run(
        self, request: ChildRequest, *, provider: str | None = None, parent: Agent | None = None
    ) -> ChildResult:
        """A sub-agent for one task: it lives until that is done, and nothing is left of it when this returns or raises.

        What it fails with is in the result. Raised is only what keeps it from being begun, and then nothing was:
        `SeamError` NO_PROVIDER and PROVIDER_AMBIGUOUS (without a `provider` there must be one alone); `SubagentError`
        UNSUPPORTED_CAPABILITY; `ToolError` DEPTH; ActorError STOPPED; and what the provider raises. There is no
        deadline but the caller's. Cancelled: it is stopped first.
        """
        here = current_agent()
        above = parent or here
        plan = self._builders.plan(request, provider, above, self.max_depth)
        agent = self._builders.build(plan)
        child = Child(agent, plan, continuable=False)
        agent.context.messages.add(MessageInput("user", request.prompt))
        with within(plan.lineage):
            place = host(agent, party(self._tree) if above is here else _alive(above).ref)
            try:
                self._living.publish(child, place)
                try:
                    await agent.generate()
                except Exception as error:
                    if not child.begun:  # else it has told its end itself
                        child.fail(error)
                return child.result
            finally:
                with trio.CancelScope(shield=True):  # as for a nursery there is no deadline: all of it is cancelled
                    await place.stop()

    async def start(
        self, request: ChildRequest, *, provider: str | None = None, parent: Agent | None = None
    ) -> ChildAccepted:
        """A sub-agent that goes on by itself. This returns when it has its first message.

        When nothing more is to be done for it, and for those beneath it, its parent is told by its inbox; it can be
        given more by `send` then, for as long as it and its parent live. Raises, besides what `run` does,
        `SubagentError` PARENT_UNAVAILABLE and LIMIT (all that the parent may have are at work), and AgentError INPUT
        for a prompt that is no text. Nothing is left then. Cancelled: nothing was begun.

        If the parent has a session, the sub-agent has one, and what it was given is stored when this returns.
        """
        await trio.lowlevel.checkpoint()
        check_input(request.prompt)
        above = _alive(parent or current_agent())
        self._make_room(above)
        plan = self._builders.plan(request, provider, above, self.max_depth)
        session = await self._records.open(plan, above)
        child, message = self._begin(plan, above, session, request.prompt)
        await _stored(child)
        return ChildAccepted(child.id, message)

    def _begin(self, plan: Plan, parent: Agent, session: Session | None, text: str) -> tuple[Child, str]:
        """Let one live that goes on by itself, with its first message. All or nothing, without a checkpoint, but where
        the inbox of one that is begun anew is full."""
        place: Ref | None = None
        try:
            crowded, new = self._make_room(_alive(parent)), session is not None and not session.count
            agent = self._builders.build(plan, session)
            child = Child(agent, plan, continuable=True)
            with within(plan.lineage):
                place = host(agent, parent.ref)
            if session is not None and new:
                session.append("subagent/descriptor", SubagentDescriptor(plan.provider, plan.request))
            full = agent.inbox.full  # only of one that is begun anew
            message = "" if full else agent.inbox.followup(text, source="parent")
            self._living.publish(child, place)
        except BaseException:
            self._records.leave(session)
            if place is not None:
                place.stop_soon(reason="refused")  # it has done nothing yet
            raise
        if crowded is not None:
            crowded.agent.ref.stop_soon(reason="replaced")
        if full:  # it reads now what its last life has left unread; otherwise it could never be given anything
            message = agent.inbox.followup(text, source="parent")
        return child, message

    def _make_room(self, parent: Agent) -> Child | None:
        """Whose place one more would take. Raises LIMIT if nobody's is free."""
        live = [each for each in self._living.of(parent) if each.continuable]
        if len(live) < self.max_children:
            return None
        idle = min((each for each in live if each.settled), key=lambda each: each.idle_since, default=None)
        if idle is None:
            raise SubagentError(
                "LIMIT",
                f"{self.max_children} sub-agents of {parent.id} are at work, and it may have no more: wait until one "
                "has finished, or do it here.",
                {"agent": parent.id, "max": self.max_children},
            )
        return idle

    # ---------------------------------------------------------------- control

    def agent(self, id: str) -> Agent | None:
        """The sub-agent of that id, if it lives."""
        child = self._living.children.get(id)
        return None if child is None else child.agent

    async def send(self, id: str, text: str, *, parent: Agent | None = None) -> str:
        """Give a continuable sub-agent more to do, in a turn of its own after those that it has; the message's id.

        Only its parent may, while it lives. One that has ended is begun anew if it is stored, with what it remembers.
        If it is stored, so is the message when this returns.

        Raises `SubagentError` UNAUTHORIZED, NOT_RESUMABLE (it has one task only, never was, or cannot be begun anew),
        ACTIVATION_CLOSING (it is being stopped), PERSISTENCE_UNAVAILABLE (it does not live, and nothing is stored);
        AgentError INPUT and INBOX_FULL; and of one that is begun anew what `start` raises. Cancelled: nothing was sent.
        One that is begun anew with a full inbox takes nothing either, but lives from now on and reads it.
        """
        await trio.lowlevel.checkpoint()
        check_input(text)
        caller = parent or current_agent()
        if id in self._living.children:
            child, message = self._give(id, text, caller)
        else:
            record = await self._records.find(id, caller)
            session = await self._records.open_again(id)
            if id in self._living.children:  # somebody has sent it something meanwhile
                child, message = self._give(id, text, caller)
            else:
                child, message = self._begin_anew(id, record, session, text, caller)
        await _stored(child)
        return message

    def _begin_anew(
        self, id: str, record: Record, session: Session, text: str, caller: Agent | None
    ) -> tuple[Child, str]:
        descriptor = record.descriptor
        try:
            parent = _alive(caller)
            plan = self._builders.plan(
                descriptor.request,
                descriptor.provider,
                parent,
                self.max_depth,
                again=id,
                least=record.header.delegation_depth,
            )
        except BaseException:
            self._records.leave(session)
            raise
        return self._begin(plan, parent, session, text)

    def _give(self, id: str, text: str, caller: Agent | None) -> tuple[Child, str]:
        child = self._living.children[id]
        if caller is None or child.parent is not caller or not caller.ref.alive:
            raise _unauthorized(caller, id, "is given more only by the agent that it works for")
        if not child.continuable:
            raise SubagentError(
                "NOT_RESUMABLE",
                f"{id} works on the task that it has and takes no other: begin another one.",
                {"id": id},
            )
        if not child.agent.ref.alive:
            raise SubagentError("ACTIVATION_CLOSING", f"{id} is being stopped: begin another one.", {"id": id})
        message = child.agent.inbox.followup(text, source="parent")
        self._living.activate(child)
        return child, message

    def interrupt(self, id: str, *, by: Agent | None = None) -> None:
        """Stop what a sub-agent does now. What waits in its inbox is kept, and read after that.

        Only an agent above it may, or a program. One that does nothing, or has ended, is left as it is. Raises
        `SubagentError` UNAUTHORIZED.
        """
        caller = by or current_agent()
        child = self._living.children.get(id)
        if caller is not None:
            if not caller.ref.alive or caller.id == id:
                raise _unauthorized(caller, id, "can be stopped by an agent above it that lives, and by no other")
            if child is not None and all(place.actor is not caller for place in child.agent.ref.upward()):
                raise _unauthorized(caller, id, "can be stopped by the agents above it only")
        if child is not None:
            child.agent.abort("interrupted" if caller is None else f"interrupted by {caller.id}", keep_inbox=True)

    def children(
        self, scope: Literal["children", "descendants"] = "children", *, by: Agent | None = None
    ) -> tuple[ChildInfo, ...]:
        """A snapshot of the sub-agents that live of whoever calls, or of all beneath it. A program sees those that no
        other sub-agent has begun, or all there are."""
        caller = by or current_agent()
        found = self._living.outermost() if caller is None else self._living.of(caller)
        return tuple(self._listed(found, in_full=scope == "descendants"))

    async def all_children(
        self, scope: Literal["children", "descendants"] = "children", *, by: Agent | None = None
    ) -> tuple[ChildInfo | ChildUnreadable, ...]:
        """The same with those behind them that are stored only, and can be begun anew by `send`. Raises what the
        persistence of sessions raises."""
        await trio.lowlevel.checkpoint()
        caller, stored = by or current_agent(), list[ChildInfo | ChildUnreadable]()
        if caller is not None and caller.session is not None:
            stored = await self._records.ready(
                caller.session.id, lambda: self._living.children.keys(), in_full=scope == "descendants"
            )
        return (*self.children(scope, by=caller), *stored)

    def _listed(self, children: list[Child], *, in_full: bool) -> Iterator[ChildInfo]:
        for child in children:
            yield child.info(in_full=in_full)
            if in_full:
                yield from self._listed(self._living.of(child.agent), in_full=True)

    def report(self, text: str) -> str:
        """Tell the parent of the sub-agent in whose run this is called; the id of the message.

        Raises `SubagentError` PARENT_UNAVAILABLE where there is none, or none any more; AgentError INPUT, INBOX_FULL.
        """
        agent = current_agent()
        child = None if agent is None else self._living.children.get(agent.id)
        if child is None or child.agent is not agent or child.parent is None:
            raise SubagentError("PARENT_UNAVAILABLE", "No agent gave this work, so that there is none to report to.")
        with suppress(ActorError):
            return tell(child.parent, f"The sub-agent {child.id} ({child.label}) reports:\n{text}")
        raise SubagentError(
            "PARENT_UNAVAILABLE",
            f"{child.parent.id}, which {child.id} works for, has ended and hears nothing any more.",
            {"parent": child.parent.id},
        )


def _alive(agent: Agent | None) -> Agent:
    if agent is None:
        raise SubagentError(
            "PARENT_UNAVAILABLE", "A sub-agent that goes on by itself needs an agent to tell: let one call, or name it."
        )
    agent.require_place()
    if not agent.ref.alive:
        raise SubagentError("PARENT_UNAVAILABLE", f"{agent.id} stops or has ended.", {"parent": agent.id})
    return agent


async def _stored(child: Child) -> None:
    """Wait until what it was given outlives the process, if it is to. Raises why it does not; it may be read then."""
    session = child.agent.session
    if session is not None and session.durable:
        with trio.CancelScope(shield=True):  # without a deadline: a write ends
            await session.flush()


def _unauthorized(caller: Agent | None, id: str, why: str) -> SubagentError:
    who = None if caller is None else caller.id
    return SubagentError("UNAUTHORIZED", f"{id} {why}, and {who or 'a program'} is not.", {"id": id, "caller": who})
