"""Agents as others see them: messages, usage, results, and what goes to a provider and comes back."""

from greenroom.protocol.agents.authority import Authority, Rule, Verdict
from greenroom.protocol.agents.children import (
    MAX_DIAGNOSTIC,
    ChildAccepted,
    ChildInfo,
    ChildRequest,
    ChildResult,
    ChildStatus,
    ChildUnreadable,
    StopReason,
)
from greenroom.protocol.agents.conversations import (
    CONVERSATION_RECAP_PREFIX,
    ConversationSnapshot,
    Section,
    parse_conversation,
)
from greenroom.protocol.agents.inbox import InboxKind, InboxMessage
from greenroom.protocol.agents.instructions import Instruction, InstructionManager, PromptFormat
from greenroom.protocol.agents.job import AgentJob
from greenroom.protocol.agents.messages import (
    UNITS_A_TOKEN,
    ChatMessage,
    MessageInput,
    Role,
    estimate_messages,
    estimate_tokens,
)
from greenroom.protocol.agents.progress import Progress, ProgressEvent
from greenroom.protocol.agents.provider import Delta, ProviderOptions, ProviderResult
from greenroom.protocol.agents.result import (
    AgentChunk,
    AgentResult,
    ThinkChunk,
    TokenChunk,
    ToolChunk,
    UsageChunk,
    agent_result_to_json,
)
from greenroom.protocol.agents.scope import Scope, ScopeManager
from greenroom.protocol.agents.thinking import ThinkSplitter
from greenroom.protocol.agents.usage import Budget, Usage, Window

__all__ = [
    "CONVERSATION_RECAP_PREFIX",
    "MAX_DIAGNOSTIC",
    "UNITS_A_TOKEN",
    "AgentChunk",
    "AgentJob",
    "AgentResult",
    "Authority",
    "Budget",
    "ChatMessage",
    "ChildAccepted",
    "ChildInfo",
    "ChildRequest",
    "ChildResult",
    "ChildStatus",
    "ChildUnreadable",
    "ConversationSnapshot",
    "Delta",
    "InboxKind",
    "InboxMessage",
    "Instruction",
    "InstructionManager",
    "MessageInput",
    "Progress",
    "ProgressEvent",
    "PromptFormat",
    "ProviderOptions",
    "ProviderResult",
    "Role",
    "Rule",
    "Scope",
    "ScopeManager",
    "Section",
    "StopReason",
    "ThinkChunk",
    "ThinkSplitter",
    "TokenChunk",
    "ToolChunk",
    "Usage",
    "UsageChunk",
    "Verdict",
    "Window",
    "agent_result_to_json",
    "estimate_messages",
    "estimate_tokens",
    "parse_conversation",
]
