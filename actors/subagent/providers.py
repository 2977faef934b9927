"""Providers of sub-agents: how one is built, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, final
from uuid import uuid4

from msgspec import Struct, structs

from greenroom.actors.agent import Agent, AgentRegistry, Conversation, ConversationManager
from greenroom.actors.session import Session
from greenroom.protocol.agents import AgentJob, ChildRequest, ConversationSnapshot
from greenroom.protocol.errors import AgentError, SubagentError

__all__ = ["CAPABILITIES", "ChildProvider", "ChildSpec", "ForkProvider", "SpawnProvider"]

CAPABILITIES: Final = ("persona", "tools")
"""The fields of a `ChildRequest` that not every provider can follow. `max_depth` needs no provider's help. One more
capability is `session`: its agents have the session of their `ChildSpec`, and so can be begun anew."""


@final
class ChildSpec(Struct, frozen=True, eq=False):
    """What a provider builds an agent from. The prompt is given to the agent afterwards."""

    id: str
    """What the agent is to be called."""
    request: ChildRequest
    parent: Agent | None
    """The agent that asks. `None`: a program."""
    session: Session | None = None
    """Its log, which has a history if it is begun anew. Only of a provider with the capability `session`."""


class ChildProvider(Protocol):
    """Builds agents for others to give work to. Anything with these two members is one."""

    @property
    def capabilities(self) -> frozenset[str]:
        """Which of `CAPABILITIES` it follows, and whether `session`. A request for another one is refused before
        `build` is called."""
        ...

    def build(self, spec: ChildSpec) -> Agent:
        """A new agent with the id of `spec` that lives nowhere yet. It may raise, and then there is none."""
        ...


@final
class SpawnProvider:
    """Sub-agents that know nothing but their task, each built for `job` by the registry::

        job = AgentJob(provider="main", messages=(), tools=("read",))
        runtime.subagents.add("reader", SpawnProvider(registry, job))

    Messages of the job come before the prompt. A request for tools that the job has not, and names that the registry
    has not, are refused with AgentError UNKNOWN.
    """

    capabilities: frozenset[str] = frozenset({"persona", "tools", "session"})

    def __init__(self, registry: AgentRegistry, job: AgentJob) -> None:
        self._registry = registry
        self._job = job

    def build(self, spec: ChildSpec) -> Agent:
        job, wanted = self._job, spec.request
        if wanted.persona is not None:
            job = structs.replace(job, system=wanted.persona)
        if wanted.tools is not None:
            job = structs.replace(job, tools=_among(wanted.tools, job.tools or ()))
        return self._registry.build(job, id=spec.id, session=spec.session)


@final
class ForkProvider:
    """Sub-agents that know what their parent knows: its model, its system prompt, a copy of its conversation, and of
    its tools those named in `tools` (None: all of them), but none of its files. They are not stored."""

    capabilities: frozenset[str] = frozenset({"persona", "tools"})

    def __init__(self, *, tools: Iterable[str] | None = None) -> None:
        self._tools = None if tools is None else tuple(tools)

    def build(self, spec: ChildSpec) -> Agent:
        parent, wanted = spec.parent, spec.request
        if parent is None:
            raise SubagentError("PARENT_UNAVAILABLE", "There is no agent here to fork: let an agent call, or name one.")
        context = parent.context
        had = {tool.name: tool for tool in context.tools.tools() if self._tools is None or tool.name in self._tools}
        names = tuple(had) if wanted.tools is None else _among(wanted.tools, tuple(had))
        conversations = ConversationManager()
        conversations.add(seed=_forked(parent.conversation))
        return Agent(
            parent.provider,
            id=spec.id,
            system=context.system if wanted.persona is None else wanted.persona,
            tools=[had[name] for name in names],
            instructions=context.instructions,
            conversations=conversations,
            scope=context.scope,
        )


def _forked(conversation: Conversation) -> ConversationSnapshot:
    """A copy, without the calls that are still to be answered: it is made in one of them."""
    messages = list(conversation.messages())
    last = max((at for at, message in enumerate(messages) if message.calls), default=None)
    if last is not None and len(messages) - last - 1 < len(messages[last].calls):
        messages = messages[:last]
    return structs.replace(conversation.snapshot(), id=str(uuid4()), messages=tuple(messages))


def _among(wanted: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    for name in wanted:
        if name not in known:
            raise AgentError(
                "UNKNOWN",
                f"A sub-agent has the tools of its provider and no others, and {name} is none of them; there are: "
                f"{', '.join(known) or 'none'}.",
                {"tool": name, "known": list(known)},
            )
    return wanted
