"""The agents of a runtime, as programs outside see them: who there is, and something to say to one."""

from __future__ import annotations

from typing import final

import trio
from msgspec import UNSET, Struct, UnsetType

from greenroom.actors.agent import Agent, AgentManager, AgentStatus
from greenroom.actors.remote import remote
from greenroom.actors.services.sessions import session_refusal
from greenroom.protocol.agents.inbox import InboxKind
from greenroom.protocol.errors import ActorError, AgentError, RemoteError, SessionError

__all__ = ["AgentInfo", "AgentPosted", "AgentService"]


class AgentInfo(Struct, frozen=True, kw_only=True, rename="camel"):
    """An agent at a glance."""

    id: str
    status: AgentStatus
    """`running` while it works; else how that ended, and `idle` before it."""
    waiting: int
    """How many messages wait in its inbox."""


class AgentPosted(Struct, frozen=True, kw_only=True, rename="camel"):
    """A message is in the inbox of an agent."""

    message_id: str


@final
class AgentService:
    """The namespace `agent`."""

    def __init__(self, agents: AgentManager) -> None:
        self._agents = agents

    @remote("list", repeatable=True)
    async def list(self) -> tuple[AgentInfo, ...]:
        """Which agents there are, in the order in which they were added."""
        await trio.lowlevel.checkpoint()
        return tuple(map(_info, self._agents.agents()))

    @remote("show", repeatable=True)
    async def show(self, agent: Agent) -> AgentInfo:
        """One agent as it stands."""
        await trio.lowlevel.checkpoint()
        return _info(agent)

    @remote("post")
    async def post(self, agent: Agent, text: str, kind: InboxKind | UnsetType = UNSET) -> AgentPosted:
        """Put a message into the inbox of an agent, which reads it when it comes to that.

        `followup`, unless something else is said, is a turn of its own after the present one; `steer` is read before
        the model is asked next; both wake an agent that is idle. `inject` is read with the next step, whenever there
        is one. Refused with `agent/inbox-full`, `agent/input` and `agent/stopped`, and with what the agent's session
        refuses: `session/disposed` if it is open no more.
        """
        await trio.lowlevel.checkpoint()
        inbox = agent.inbox
        put = {"followup": inbox.followup, "steer": inbox.steer, "inject": inbox.inject}
        try:
            return AgentPosted(message_id=put["followup" if isinstance(kind, UnsetType) else kind](text))
        except SessionError as error:
            raise session_refusal(error) from None
        except (AgentError, ActorError) as error:
            raise RemoteError(f"agent/{error.code.lower().replace('_', '-')}", error.message, error.context) from None

    @remote("abort")
    async def abort(self, agent: Agent, reason: str | UnsetType = UNSET, keep_inbox: bool | UnsetType = UNSET) -> None:
        """Stop what an agent works on, without waiting for its end, and discard what waits in its inbox.

        With `keepInbox` that stays, and is read afterwards. Refused with `session/disposed` if the agent's session is
        open no more and what waits cannot be discarded in it; what it works on is stopped all the same.
        """
        await trio.lowlevel.checkpoint()
        try:
            agent.abort(None if isinstance(reason, UnsetType) else reason, keep_inbox=keep_inbox is True)
        except SessionError as error:
            raise session_refusal(error) from None


def _info(agent: Agent) -> AgentInfo:
    return AgentInfo(id=agent.id, status=agent.status, waiting=len(agent.inbox.messages))
