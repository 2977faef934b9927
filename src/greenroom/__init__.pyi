"""The public names, and where each lives."""

from .actors.agent import Agent, AgentRegistry, AgentRun, Conversation, ConversationManager
from .actors.approver import terminal_approver
from .actors.bridge import asgi_app, terminal_routes
from .actors.client import Client, Reconnect, connect
from .actors.client.prompt import PromptClient, open_prompt_client
from .actors.database import Database, json_driver, memory_driver, sqlite_driver
from .actors.gateway import Access, AccessToken, Gateway, GatewayLimits, read_tokens
from .actors.job import Job, JobManager
from .actors.mcp import mcp_endpoint, mcp_server, mount_mcp, serve_stdio
from .actors.portal import Portal, portal
from .actors.process import run_command
from .actors.providers import ScriptedProvider, ScriptedTurn
from .actors.providers.settings import ModelSettings
from .actors.relation import RelationManager
from .actors.remote import Lookups, RemoteServices, remote, remote_stream
from .actors.session import JsonlPersistence, Session, SessionManager
from .actors.subagent import ChildProvider, ChildSpec, ForkProvider, SpawnProvider, Subagents
from .actors.system import Runtime, open_runtime
from .actors.terminal import MemoryTerminalStore, Terminal, TerminalManager, TerminalStore
from .actors.toolbox.agent import agent_tool
from .actors.toolbox.answer import answer_tool
from .actors.toolbox.answer_question import answer_question_tool
from .actors.toolbox.ask import ask_tool, infer_terminal_code
from .actors.toolbox.ask_question import ask_question_tool
from .actors.toolbox.ask_user_question import ask_user_question_tool
from .actors.toolbox.bash import bash_tool
from .actors.toolbox.database import database_tool
from .actors.toolbox.describe import describe_tool
from .actors.toolbox.edit import edit_tool
from .actors.toolbox.endpoint import endpoint_tool
from .actors.toolbox.file_tools import file_tools
from .actors.toolbox.glob import glob_tool
from .actors.toolbox.grep import grep_tool
from .actors.toolbox.infer import infer_tool
from .actors.toolbox.interrupt_agent import interrupt_agent_tool
from .actors.toolbox.job_kill import job_kill_tool
from .actors.toolbox.job_list import job_list_tool
from .actors.toolbox.job_output import job_output_tool
from .actors.toolbox.list_agents import list_agents_tool
from .actors.toolbox.read import read_tool
from .actors.toolbox.relation import relation_tool
from .actors.toolbox.report import report_tool
from .actors.toolbox.send_message import send_message_tool
from .actors.toolbox.subagent import subagent_tool
from .actors.toolbox.todo_write import TodoLists, todo_write_tool
from .actors.toolbox.workflow import agent_function, workflow_functions, workflow_tool
from .actors.toolbox.workspace import workspace_tool
from .actors.toolbox.write import write_tool
from .actors.workflow import (
    MemoryWorkflowStore,
    Permanent,
    RetryAfter,
    Run,
    TaskController,
    WorkflowManager,
    WorkflowRunner,
    WorkflowStore,
)
from .actors.workspace import Workspace, WorkspaceManager
from .protocol.access import Grants
from .protocol.agents import (
    AgentJob,
    AgentResult,
    Authority,
    Budget,
    ChatMessage,
    ChildAccepted,
    ChildInfo,
    ChildRequest,
    ChildResult,
    InboxMessage,
    MessageInput,
    Progress,
    ProviderResult,
    Rule,
    Scope,
    Usage,
    Window,
)
from .protocol.database import Condition, Order, Query
from .protocol.errors import (
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
    JobError,
    PatternError,
    ProcessError,
    ProviderError,
    RelationError,
    RemoteError,
    RpcError,
    SeamError,
    SessionError,
    SubagentError,
    TerminalDeadlock,
    TerminalError,
    ToolDeadlock,
    ToolError,
    WorkflowError,
    WorkspaceError,
)
from .protocol.forms import FieldError, Form, FormSchema, parse_form
from .protocol.jobs import JobSnapshot
from .protocol.processes import CommandResult
from .protocol.relations import belongs_to, has_many, has_morph, has_one, has_through
from .protocol.schemas.infer import infer_schema
from .protocol.sessions import SessionEvent, SessionHeader
from .protocol.terminals import AnswerFailure, AnswerRefusal, AnswerResult, AnswerSuccess, PendingForm
from .protocol.tools import ToolCall, ToolDefinition, ToolFailure, ToolResult, ToolSuccess
from .protocol.tree import TreeSnapshot
from .protocol.workflows import Workflow, WorkflowDefinition, WorkflowResult, WorkflowSnapshot
from .runtime.actor import Actor, Leaf, handles
from .runtime.answers import answer_of
from .runtime.background import Background, Work, current_job
from .runtime.bus import Bus, Next
from .runtime.cancel import Cancel
from .runtime.context import current_actor
from .runtime.file_access import EditIntent, FileObserved, Precondition, WriteIntent
from .runtime.messages import Message, Request, Withdrawn
from .runtime.pipeline.approvals import ApprovalRequest, Decision
from .runtime.pipeline.execution import conclude_turn, current_invocation, defer_context
from .runtime.pipeline.handling import Card, Handling
from .runtime.pipeline.invocations import Invocation, Settled
from .runtime.pipeline.outcomes import Outcome, ToolFail, ToolOk
from .runtime.pipeline.pipeline import Pipeline
from .runtime.pipeline.snapshot import thaw
from .runtime.pipeline.verdicts import Accept, Allow, Ask, Block, Deny, Review, Verdict
from .runtime.policies import (
    CheckedRecorder,
    LocalSpill,
    RepeatReminder,
    SpillStore,
    approval_policy,
    measure_tools,
    observation_policy,
    retry_policy,
    spill_policy,
    timeout_policy,
)
from .runtime.ref import Ref
from .runtime.reply import Reply
from .runtime.restart import Restart
from .runtime.seams import Seam
from .runtime.tools import Tool, ToolManager, tool_function
from .runtime.tree import Tree, run_tree

__all__ = [
    "Accept",
    "Access",
    "AccessToken",
    "Actor",
    "ActorDeadlock",
    "ActorError",
    "Agent",
    "AgentError",
    "AgentJob",
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
    "Background",
    "Block",
    "Budget",
    "Bus",
    "Cancel",
    "Card",
    "ChatMessage",
    "CheckedRecorder",
    "ChildAccepted",
    "ChildInfo",
    "ChildProvider",
    "ChildRequest",
    "ChildResult",
    "ChildSpec",
    "Client",
    "CommandResult",
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
    "EditIntent",
    "FieldError",
    "FileObserved",
    "ForkProvider",
    "Form",
    "FormError",
    "FormSchema",
    "Gateway",
    "GatewayLimits",
    "Grants",
    "GreenroomError",
    "Handling",
    "InboxMessage",
    "Invocation",
    "Job",
    "JobError",
    "JobManager",
    "JobSnapshot",
    "JsonlPersistence",
    "Leaf",
    "LocalSpill",
    "Lookups",
    "MemoryTerminalStore",
    "MemoryWorkflowStore",
    "Message",
    "MessageInput",
    "ModelSettings",
    "Next",
    "Order",
    "Outcome",
    "PatternError",
    "PendingForm",
    "Permanent",
    "Pipeline",
    "Portal",
    "Precondition",
    "ProcessError",
    "Progress",
    "PromptClient",
    "ProviderError",
    "ProviderResult",
    "Query",
    "Reconnect",
    "Ref",
    "RelationError",
    "RelationManager",
    "RemoteError",
    "RemoteServices",
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
    "Seam",
    "SeamError",
    "Session",
    "SessionError",
    "SessionEvent",
    "SessionHeader",
    "SessionManager",
    "Settled",
    "SpawnProvider",
    "SpillStore",
    "SubagentError",
    "Subagents",
    "TaskController",
    "Terminal",
    "TerminalDeadlock",
    "TerminalError",
    "TerminalManager",
    "TerminalStore",
    "TodoLists",
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
    "Work",
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
    "WriteIntent",
    "agent_function",
    "agent_tool",
    "answer_of",
    "answer_question_tool",
    "answer_tool",
    "approval_policy",
    "asgi_app",
    "ask_question_tool",
    "ask_tool",
    "ask_user_question_tool",
    "bash_tool",
    "belongs_to",
    "conclude_turn",
    "connect",
    "current_actor",
    "current_invocation",
    "current_job",
    "database_tool",
    "defer_context",
    "describe_tool",
    "edit_tool",
    "endpoint_tool",
    "file_tools",
    "glob_tool",
    "grep_tool",
    "handles",
    "has_many",
    "has_morph",
    "has_one",
    "has_through",
    "infer_schema",
    "infer_terminal_code",
    "infer_tool",
    "interrupt_agent_tool",
    "job_kill_tool",
    "job_list_tool",
    "job_output_tool",
    "json_driver",
    "list_agents_tool",
    "mcp_endpoint",
    "mcp_server",
    "measure_tools",
    "memory_driver",
    "mount_mcp",
    "observation_policy",
    "open_prompt_client",
    "open_runtime",
    "parse_form",
    "portal",
    "read_tokens",
    "read_tool",
    "relation_tool",
    "remote",
    "remote_stream",
    "report_tool",
    "retry_policy",
    "run_command",
    "run_tree",
    "send_message_tool",
    "serve_stdio",
    "spill_policy",
    "sqlite_driver",
    "subagent_tool",
    "terminal_approver",
    "terminal_routes",
    "thaw",
    "timeout_policy",
    "todo_write_tool",
    "tool_function",
    "workflow_functions",
    "workflow_tool",
    "workspace_tool",
    "write_tool",
]
