"""greenroom: agents, people and workflow runs ask each other whole forms, and nobody waits in a circle."""

from greenroom.actors.client import connect
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.terminal import MemoryTerminalStore, Terminal, TerminalManager, TerminalStore
from greenroom.actors.toolbox.answer import answer_tool
from greenroom.actors.toolbox.ask import ask_tool, infer_terminal_code
from greenroom.actors.toolbox.describe import describe_tool
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
    "Actor",
    "ActorDeadlock",
    "ActorError",
    "AnswerFailure",
    "AnswerRefusal",
    "AnswerResult",
    "AnswerSuccess",
    "ConfigError",
    "Deadlock",
    "FieldError",
    "Form",
    "FormError",
    "FormSchema",
    "GreenroomError",
    "Leaf",
    "MemoryTerminalStore",
    "Message",
    "PatternError",
    "PendingForm",
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
    "ask_tool",
    "connect",
    "current_actor",
    "describe_tool",
    "handles",
    "infer_terminal_code",
    "open_runtime",
    "parse_form",
    "run_tree",
    "tool_function",
]
