"""Agents: a model, a conversation and tools, and runs that end with whoever waits for them."""

from greenroom.actors.agent.agent import AGENT_EVENTS, Agent, AgentStatus
from greenroom.actors.agent.context import AgentContext
from greenroom.actors.agent.conversation import Conversation
from greenroom.actors.agent.conversations import ConversationManager
from greenroom.actors.agent.delegation import Delegations, delegate, host, party
from greenroom.actors.agent.inbox import DEFAULT_INBOX_LIMIT, Inbox, check_input
from greenroom.actors.agent.manager import AgentManager
from greenroom.actors.agent.recorder import AgentRecorder
from greenroom.actors.agent.registry import AgentRegistry, settle_job
from greenroom.actors.agent.run import AgentRun, RunOptions, current_agent, current_run
from greenroom.actors.agent.settings import DEFAULT_AGENT_LIMIT
from greenroom.actors.agent.store import (
    CONVERSATIONS,
    ConversationStore,
    MemoryConversationStore,
    TableConversationStore,
)

__all__ = [
    "AGENT_EVENTS",
    "CONVERSATIONS",
    "DEFAULT_AGENT_LIMIT",
    "DEFAULT_INBOX_LIMIT",
    "Agent",
    "AgentContext",
    "AgentManager",
    "AgentRecorder",
    "AgentRegistry",
    "AgentRun",
    "AgentStatus",
    "Conversation",
    "ConversationManager",
    "ConversationStore",
    "Delegations",
    "Inbox",
    "MemoryConversationStore",
    "RunOptions",
    "TableConversationStore",
    "check_input",
    "current_agent",
    "current_run",
    "delegate",
    "host",
    "party",
    "settle_job",
]
