"""What agents are built from by name, and the running of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar, final

from greenroom.actors.agent.agent import Agent
from greenroom.actors.agent.conversations import ConversationManager
from greenroom.actors.agent.settings import DEFAULT_AGENT_LIMIT
from greenroom.actors.agent.store import ConversationStore
from greenroom.actors.session import Session
from greenroom.protocol.agents import AgentJob, AgentResult, Budget
from greenroom.protocol.errors import AgentError, AgentJobError
from greenroom.runtime.cancel import CancelToken
from greenroom.runtime.provider import Decides, Provider, Scheduler
from greenroom.runtime.tools import Tool

__all__ = ["AgentRegistry", "settle_job"]

T = TypeVar("T")


@final
class AgentRegistry:
    """Providers, tools, authorities and schedulers by name; copies of the mappings given.

    With a `store`, each agent that is built has a new conversation that can be saved there.
    """

    def __init__(
        self,
        providers: Mapping[str, Provider],
        *,
        tools: Mapping[str, Tool] | None = None,
        authorities: Mapping[str, Decides] | None = None,
        schedulers: Mapping[str, Scheduler] | None = None,
        store: ConversationStore | None = None,
    ) -> None:
        self._providers = dict(providers)
        self._tools = dict(tools or {})
        self._authorities = dict(authorities or {})
        self._schedulers = dict(schedulers or {})
        self._store = store

    @property
    def providers(self) -> tuple[str, ...]:
        """The names of all providers."""
        return tuple(self._providers)

    def with_tools(self, tools: Iterable[Tool]) -> AgentRegistry:
        """The same, with these tools where it has none of their names."""
        return AgentRegistry(
            self._providers,
            tools={tool.name: tool for tool in tools} | self._tools,
            authorities=self._authorities,
            schedulers=self._schedulers,
            store=self._store,
        )

    def provider(self, name: str) -> Provider:
        """The provider of that name. Raises AgentError UNKNOWN, as its siblings do."""
        return _known("provider", name, self._providers)

    def tool(self, name: str) -> Tool:
        return _known("tool", name, self._tools)

    def authority(self, name: str) -> Decides:
        return _known("authority", name, self._authorities)

    def scheduler(self, name: str) -> Scheduler:
        return _known("scheduler", name, self._schedulers)

    def build(
        self,
        job: AgentJob,
        cancel: CancelToken | None = None,
        *,
        id: str | None = None,
        session: Session | None = None,
    ) -> Agent:
        """An agent for the job, with tools and a conversation of its own. It is to be given a place in a tree.

        Its `id` (by default a UUID) is what it is known by in the lineage of what runs beneath it. With a `session`,
        that is its log and has its id; the messages of the job stand in it already, if anything does.

        Raises AgentError UNKNOWN for the first name that there is not, the provider's before all others.
        """
        provider = self.provider(job.provider)
        agent = Agent(
            provider,
            id=id,
            system=job.system,
            tools=[self.tool(name) for name in job.tools or ()],
            conversations=ConversationManager(store=self._store),
            limit=DEFAULT_AGENT_LIMIT if job.limit is None else job.limit,
            timeout=None if job.timeout is None else job.timeout / 1000,
            budget=None if job.budget is None else Budget(completion=job.budget),
            scheduler=None if job.scheduler is None else self.scheduler(job.scheduler),
            authority=None if job.authority is None else self.authority(job.authority),
            cancel=cancel,
            session=session,
        )
        if session is None or not session.history():
            agent.conversation.add(job.messages)
        return agent


async def settle_job(agent: Agent, *, allow_partial: bool = False) -> AgentResult:
    """One run of an agent that was built for a job. Raises AgentJobError if it ends before it is done, unless that is
    allowed, and as `Agent.generate` does."""
    result = await agent.generate()
    if result.partial and not allow_partial:
        error = AgentJobError("PARTIAL", "agent job ended partial", {"agent": agent.id})
        error.partial = result
        raise error
    return result


def _known(kind: str, name: str, found: Mapping[str, T]) -> T:
    if name in found:
        return found[name]
    known = ", ".join(found) or "none"
    raise AgentError("UNKNOWN", f"unknown {kind}: {name} (there are: {known})", {kind: name, "known": list(found)})
