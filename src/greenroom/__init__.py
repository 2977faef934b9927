"""greenroom: agents, people and workflow runs ask each other whole forms, and nobody waits in a circle."""

from greenroom.actors.agent import Agent, AgentRegistry, AgentRun, Conversation, ConversationManager
from greenroom.actors.approver import terminal_approver
from greenroom.actors.bridge import asgi_app, terminal_routes
from greenroom.actors.client import Client, Reconnect, connect
from greenroom.actors.client.prompt import PromptClient, open_prompt_client
from greenroom.actors.database import Database, json_driver, memory_driver, sqlite_driver
from greenroom.actors.gateway import Access, AccessToken, Gateway, GatewayLimits, read_tokens
from greenroom.actors.mcp import mcp_server, mount_mcp, serve_stdio
from greenroom.actors.portal import Portal, portal
from greenroom.actors.providers import ScriptedProvider, ScriptedTurn
from greenroom.actors.relation import RelationManager
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.terminal import MemoryTerminalStore, Terminal, TerminalManager, TerminalStore
from greenroom.actors.toolbox.agent import agent_tool
from greenroom.actors.toolbox.answer import answer_tool
from greenroom.actors.toolbox.ask import ask_tool, infer_terminal_code
from greenroom.actors.toolbox.database import database_tool
from greenroom.actors.toolbox.describe import describe_tool
from greenroom.actors.toolbox.endpoint import endpoint_tool
from greenroom.actors.toolbox.infer import infer_tool
from greenroom.actors.toolbox.relation import relation_tool
from greenroom.actors.toolbox.workflow import agent_function, workflow_functions, workflow_tool
from greenroom.actors.toolbox.workspace import workspace_tool
from greenroom.actors.workflow import (
    MemoryWorkflowStore,
    Permanent,
    RetryAfter,
    Run,
    TaskController,
    WorkflowManager,
    WorkflowRunner,
    WorkflowStore,
)
from greenroom.actors.workspace import Workspace, WorkspaceManager
from greenroom.protocol.access import Grants
from greenroom.protocol.agents import (
    AgentResult,
    Authority,
    Budget,
    ChatMessage,
    MessageInput,
    Progress,
    ProviderResult,
    Rule,
    Scope,
    Usage,
    Window,
)
from greenroom.protocol.database import Condition, Order, Query
from greenroom.protocol.errors import (
    ActorDeadlock,
    ActorError,
    AgentError,
    AgentJobError,
    ConfigError,
    ConversationError,
    DatabaseError,
    Deadlock,
    FormError,
    GreenroomError,
    PatternError,
    ProviderError,
    RelationError,
    RpcError,
    TerminalDeadlock,
    TerminalError,
    ToolDeadlock,
    ToolError,
    WorkflowError,
    WorkspaceError,
)
from greenroom.protocol.forms import FieldError, Form, FormSchema, parse_form
from greenroom.protocol.relations import belongs_to, has_many, has_morph, has_one, has_through
from greenroom.protocol.schemas.infer import infer_schema
from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal, AnswerResult, AnswerSuccess, PendingForm
from greenroom.protocol.tools import ToolCall, ToolDefinition, ToolFailure, ToolResult, ToolSuccess
from greenroom.protocol.tree import TreeSnapshot
from greenroom.protocol.workflows import Workflow, WorkflowDefinition, WorkflowResult, WorkflowSnapshot
from greenroom.runtime.actor import Actor, Leaf, handles
from greenroom.runtime.answers import answer_of
from greenroom.runtime.bus import Bus, Next
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.context import current_actor
from greenroom.runtime.messages import Message, Request, Withdrawn
from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
from greenroom.runtime.pipeline.execution import conclude_turn, current_invocation, defer_context
from greenroom.runtime.pipeline.handling import Card, Handling
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import Outcome, ToolFail, ToolOk
from greenroom.runtime.pipeline.pipeline import Pipeline
from greenroom.runtime.pipeline.snapshot import thaw
from greenroom.runtime.pipeline.verdicts import Accept, Allow, Ask, Block, Deny, Review, Verdict
from greenroom.runtime.policies import (
    CheckedRecorder,
    LocalSpill,
    RepeatReminder,
    SpillStore,
    measure_tools,
    retry_policy,
    spill_policy,
    timeout_policy,
)
from greenroom.runtime.ref import Ref
from greenroom.runtime.reply import Reply
from greenroom.runtime.restart import Restart
from greenroom.runtime.tools import Tool, ToolManager, tool_function
from greenroom.runtime.tree import Tree, run_tree

__all__ = [
    "Accept",
    "Access",
    "AccessToken",
    "Actor",
    "ActorDeadlock",
    "ActorError",
    "Agent",
    "AgentError",
    "AgentJobError",
    "AgentRegistry",
    "AgentResult",
    "AgentRun",
    "Allow",
    "AnswerFailure",
    "AnswerRefusal",
    "AnswerResult",
    "AnswerSuccess",
    "ApprovalRequest",
    "Ask",
    "Authority",
    "Block",
    "Budget",
    "Bus",
    "Cancel",
    "Card",
    "ChatMessage",
    "CheckedRecorder",
    "Client",
    "Condition",
    "ConfigError",
    "Conversation",
    "ConversationError",
    "ConversationManager",
    "Database",
    "DatabaseError",
    "Deadlock",
    "Decision",
    "Deny",
    "FieldError",
    "Form",
    "FormError",
    "FormSchema",
    "Gateway",
    "GatewayLimits",
    "Grants",
    "GreenroomError",
    "Handling",
    "Invocation",
    "Leaf",
    "LocalSpill",
    "MemoryTerminalStore",
    "MemoryWorkflowStore",
    "Message",
    "MessageInput",
    "Next",
    "Order",
    "Outcome",
    "PatternError",
    "PendingForm",
    "Permanent",
    "Pipeline",
    "Portal",
    "Progress",
    "PromptClient",
    "ProviderError",
    "ProviderResult",
    "Query",
    "Reconnect",
    "Ref",
    "RelationError",
    "RelationManager",
    "RepeatReminder",
    "Reply",
    "Request",
    "Restart",
    "RetryAfter",
    "Review",
    "RpcError",
    "Rule",
    "Run",
    "Runtime",
    "Scope",
    "ScriptedProvider",
    "ScriptedTurn",
    "Settled",
    "SpillStore",
    "TaskController",
    "Terminal",
    "TerminalDeadlock",
    "TerminalError",
    "TerminalManager",
    "TerminalStore",
    "Tool",
    "ToolCall",
    "ToolDeadlock",
    "ToolDefinition",
    "ToolError",
    "ToolFail",
    "ToolFailure",
    "ToolManager",
    "ToolOk",
    "ToolResult",
    "ToolSuccess",
    "Tree",
    "TreeSnapshot",
    "Usage",
    "Verdict",
    "Window",
    "Withdrawn",
    "Workflow",
    "WorkflowDefinition",
    "WorkflowError",
    "WorkflowManager",
    "WorkflowResult",
    "WorkflowRunner",
    "WorkflowSnapshot",
    "WorkflowStore",
    "Workspace",
    "WorkspaceError",
    "WorkspaceManager",
    "agent_function",
    "agent_tool",
    "answer_of",
    "answer_tool",
    "asgi_app",
    "ask_tool",
    "belongs_to",
    "conclude_turn",
    "connect",
    "current_actor",
    "current_invocation",
    "database_tool",
    "defer_context",
    "describe_tool",
    "endpoint_tool",
    "handles",
    "has_many",
    "has_morph",
    "has_one",
    "has_through",
    "infer_schema",
    "infer_terminal_code",
    "infer_tool",
    "json_driver",
    "mcp_server",
    "measure_tools",
    "memory_driver",
    "mount_mcp",
    "open_prompt_client",
    "open_runtime",
    "parse_form",
    "portal",
    "read_tokens",
    "relation_tool",
    "retry_policy",
    "run_tree",
    "serve_stdio",
    "spill_policy",
    "sqlite_driver",
    "terminal_approver",
    "terminal_routes",
    "thaw",
    "timeout_policy",
    "tool_function",
    "workflow_functions",
    "workflow_tool",
    "workspace_tool",
]
