"""greenroom: agents, people and workflow runs ask each other whole forms, and nobody waits in a circle."""

from greenroom.actors.bridge import asgi_app, terminal_routes
from greenroom.actors.client import Client, Reconnect, connect
from greenroom.actors.client.prompt import PromptClient, open_prompt_client
from greenroom.actors.gateway import Access, AccessToken, Gateway, GatewayLimits, read_tokens
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.terminal import MemoryTerminalStore, Terminal, TerminalManager, TerminalStore
from greenroom.actors.toolbox.answer import answer_tool
from greenroom.actors.toolbox.ask import ask_tool, infer_terminal_code
from greenroom.actors.toolbox.describe import describe_tool
from greenroom.actors.toolbox.endpoint import endpoint_tool
from greenroom.actors.toolbox.infer import infer_tool
from greenroom.protocol.access import Grants
from greenroom.protocol.errors import (
    ActorDeadlock,
    ActorError,
    ConfigError,
    Deadlock,
    FormError,
    GreenroomError,
    PatternError,
    RpcError,
    TerminalDeadlock,
    TerminalError,
    ToolDeadlock,
    ToolError,
)
from greenroom.protocol.forms import FieldError, Form, FormSchema, parse_form
from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal, AnswerResult, AnswerSuccess, PendingForm
from greenroom.protocol.tools import ToolCall, ToolDefinition, ToolFailure, ToolResult, ToolSuccess
from greenroom.protocol.tree import TreeSnapshot
from greenroom.runtime.actor import Actor, Leaf, handles
from greenroom.runtime.answers import answer_of
from greenroom.runtime.context import current_actor
from greenroom.runtime.messages import Message, Request, Withdrawn
from greenroom.runtime.ref import Ref
from greenroom.runtime.reply import Reply
from greenroom.runtime.restart import Restart
from greenroom.runtime.tools import Tool, ToolManager, tool_function
from greenroom.runtime.tree import Tree, run_tree

__all__ = [
    "Access",
    "AccessToken",
    "Actor",
    "ActorDeadlock",
    "ActorError",
    "AnswerFailure",
    "AnswerRefusal",
    "AnswerResult",
    "AnswerSuccess",
    "Client",
    "ConfigError",
    "Deadlock",
    "FieldError",
    "Form",
    "FormError",
    "FormSchema",
    "Gateway",
    "GatewayLimits",
    "Grants",
    "GreenroomError",
    "Leaf",
    "MemoryTerminalStore",
    "Message",
    "PatternError",
    "PendingForm",
    "PromptClient",
    "Reconnect",
    "Ref",
    "Reply",
    "Request",
    "Restart",
    "RpcError",
    "Runtime",
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
    "ToolFailure",
    "ToolManager",
    "ToolResult",
    "ToolSuccess",
    "Tree",
    "TreeSnapshot",
    "Withdrawn",
    "answer_of",
    "answer_tool",
    "asgi_app",
    "ask_tool",
    "connect",
    "current_actor",
    "describe_tool",
    "endpoint_tool",
    "handles",
    "infer_terminal_code",
    "infer_tool",
    "open_prompt_client",
    "open_runtime",
    "parse_form",
    "read_tokens",
    "run_tree",
    "terminal_routes",
    "tool_function",
]
