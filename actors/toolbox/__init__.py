"""The tools that a model calls, one module a tool."""

from greenroom.actors.toolbox.agent import agent_tool
from greenroom.actors.toolbox.answer import answer_tool
from greenroom.actors.toolbox.answer_question import answer_question_tool
from greenroom.actors.toolbox.ask import ask_tool, infer_terminal_code
from greenroom.actors.toolbox.ask_question import ask_question_tool
from greenroom.actors.toolbox.ask_user_question import ask_user_question_tool
from greenroom.actors.toolbox.bash import bash_tool
from greenroom.actors.toolbox.database import database_tool, infer_database_code
from greenroom.actors.toolbox.describe import describe_tool
from greenroom.actors.toolbox.edit import edit_tool
from greenroom.actors.toolbox.endpoint import endpoint_tool
from greenroom.actors.toolbox.file_tools import file_tools
from greenroom.actors.toolbox.glob import glob_tool
from greenroom.actors.toolbox.grep import grep_tool
from greenroom.actors.toolbox.infer import infer_tool
from greenroom.actors.toolbox.interrupt_agent import interrupt_agent_tool
from greenroom.actors.toolbox.job_kill import job_kill_tool
from greenroom.actors.toolbox.job_list import job_list_tool
from greenroom.actors.toolbox.job_output import job_output_tool
from greenroom.actors.toolbox.list_agents import list_agents_tool
from greenroom.actors.toolbox.read import read_tool
from greenroom.actors.toolbox.relation import infer_relation_code, relation_tool
from greenroom.actors.toolbox.report import report_tool
from greenroom.actors.toolbox.send_message import send_message_tool
from greenroom.actors.toolbox.subagent import subagent_tool
from greenroom.actors.toolbox.todo_write import TodoLists, todo_write_tool
from greenroom.actors.toolbox.workflow import agent_function, workflow_functions, workflow_tool
from greenroom.actors.toolbox.workspace import workspace_tool
from greenroom.actors.toolbox.write import write_tool

__all__ = [
    "TodoLists",
    "agent_function",
    "agent_tool",
    "answer_question_tool",
    "answer_tool",
    "ask_question_tool",
    "ask_tool",
    "ask_user_question_tool",
    "bash_tool",
    "database_tool",
    "describe_tool",
    "edit_tool",
    "endpoint_tool",
    "file_tools",
    "glob_tool",
    "grep_tool",
    "infer_database_code",
    "infer_relation_code",
    "infer_terminal_code",
    "infer_tool",
    "interrupt_agent_tool",
    "job_kill_tool",
    "job_list_tool",
    "job_output_tool",
    "list_agents_tool",
    "read_tool",
    "relation_tool",
    "report_tool",
    "send_message_tool",
    "subagent_tool",
    "todo_write_tool",
    "workflow_functions",
    "workflow_tool",
    "workspace_tool",
    "write_tool",
]
