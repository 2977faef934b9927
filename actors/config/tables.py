"""What can be configured: a struct for each table of the file, with its defaults and what each key means.

The text beneath a key is what `greenroom config explain` and docs/config.md say of it. Keys have the names of the
flags of `greenroom serve` where there is a flag, which then wins over the file.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, cast

from msgspec import Meta, Struct

__all__ = [
    "REFERENCE",
    "TABLES",
    "AgentLoopTable",
    "ApprovalsTable",
    "BashTable",
    "Config",
    "CredentialsTable",
    "DatabasesTable",
    "GatewayTable",
    "JournalTable",
    "LlmTable",
    "MetricsTable",
    "PoliciesTable",
    "QuestionsTable",
    "RemoteTable",
    "RepeatsTable",
    "RetryTable",
    "SecretRef",
    "SessionsTable",
    "SpillTable",
    "SubagentsTable",
    "TerminalsTable",
    "TimeoutTable",
    "TodosTable",
    "ToolsTable",
    "WorkflowsTable",
    "WorkspacesTable",
    "table_of",
]

Port = Annotated[int, Meta(ge=0, le=65_535)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Count = Annotated[int, Meta(ge=1)]
Name = Annotated[str, Meta(min_length=1)]

REFERENCE: Final = re.compile(r"\A[A-Za-z_][A-Za-z0-9_]*\Z")
SecretRef = Annotated[str, Meta(pattern=REFERENCE.pattern, title="name of a credential")]
"""The name of a credential. A secret itself is refused in its place, and repeated nowhere."""


class GatewayTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The port at which people and programs come in."""

    host: Name = "127.0.0.1"
    """The address to listen on. Without access tokens only this machine's own addresses are allowed."""
    port: Port | None = None
    """The port to listen on; 0 takes a free one. If it is not given, `greenroom serve` listens on 8642, and `greenroom
    mcp` takes a free one, since there may be many."""
    grace: Seconds = 30.0
    """Seconds that a client which lost its connection may be away before its forms are withdrawn."""
    tokens: Name | None = None
    """A TOML file of access tokens, each by reference; without it every program of this machine may do everything."""
    trusted_hosts: tuple[Name, ...] = ()
    """Further names, such as greenroom.example:8443, under which the gateway may be called."""
    trusted_origins: tuple[Name, ...] = ()
    """Origins of pages, such as https://desk.example, that may call it besides its own."""
    cert: Name | None = None
    """The certificate chain for TLS, as PEM; it needs `key` as well."""
    key: Name | None = None
    """The file with the certificate's key, as PEM; it needs `cert` as well."""


class TerminalsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who can be asked."""

    names: tuple[Name, ...] = ()
    """The terminals there are from the start."""
    timeout: Seconds = 300.0
    """Seconds until an unanswered form expires, where its ask says nothing else; 0 means never."""
    cap: Count | None = None
    """How many forms one terminal may hold at a time; any number if it is not given."""


class JournalTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The durable record. Without this table nothing outlives the process."""

    data: Name
    """The file that durable asks, runs and their events are recorded in; it is made if there is none."""


class SessionsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the logs of agents are kept. Without this table they are in the journal, or in memory if there is none."""

    root: Name
    """The place: for `jsonl` a folder beneath which each log has a file, and which is made if there is none."""
    project: Name = "default"
    """What the logs belong to: for `jsonl` a folder of its own beneath `root`."""
    persistence: Name = "jsonl"
    """Who keeps them, a provider of the seam `session_persistence`."""


class WorkflowsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs of workflows that clients may start."""

    functions: Name | None = None
    """A module of the current folder: its public functions, or what it calls `functions`, are the behaviours."""


class RemoteTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Remote methods: what programs may call of services, besides what every runtime offers."""

    services: Name | None = None
    """A module of the current folder: what it calls `services`, by their namespaces, is offered."""


class WorkspacesTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tools for files. Without this table there are none."""

    roots: Annotated[tuple[Name, ...], Meta(min_length=1)]
    """The folders whose files they read and change; the first is the active one."""
    tools: Literal["workspace", "files"] = "workspace"
    """Which there are: `workspace`, one with many operations, or `files`, which are `read`, `write`, `edit`, `glob` and
    `grep`. By these nobody changes a file that they have not read as it is."""
    private: tuple[Name, ...] = (".git", ".hg", ".svn")
    """Names of folders and files that are no part of it, wherever they are; give those of other programs as well, such
    as `.venv` and `node_modules`, where there are too many files."""


class QuestionsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tool `ask_user_question`. Without this table it is offered by `greenroom chat` alone, with `files`."""

    terminal: Name
    """The terminal that is asked, one of `terminals.names`."""
    timeout: Seconds | None = None
    """Seconds until an unanswered question expires; 0 means never, and without it the terminal's own timeout holds."""
    delegated: bool = False
    """Whether agents that work for other agents may ask too, by name; if not, they are refused at once."""


class TodosTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tool `todo_write`. Without this table it is not offered."""

    several: bool
    """Whether more than one entry of a list may be in progress."""


class DatabasesTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tool `database`. Without this table it is not offered."""

    files: dict[Name, Name]
    """The name of each database and the file that keeps it: JSON if it ends with .json, SQLite otherwise."""
    drivers: tuple[Name, ...] = ("memory",)
    """In what else databases may be created, providers of the seam `storage`."""


class BashTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tool `bash`, and `job_list`, `job_output` and `job_kill` for what it leaves in the background. Without this
    table none of them is offered. Commands may do whatever the account may that greenroom runs under."""

    root: Name
    """The folder in which commands begin. It keeps nothing from leaving it."""
    env: tuple[SecretRef, ...] = ()
    """The names of credentials that commands find in their environment, which has no keys and no tokens otherwise."""
    spill: Name | None = None
    """The folder that keeps output which is too long to be shown; a private one for temporary files if it is not
    given."""


class SubagentsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tools by which the agent of `greenroom chat` has agents of its own. Without this table there are none."""

    provider: Name = "spawn"
    """Who builds them, a provider of the seam `subagents`: `spawn`, which know nothing but their task, or `fork`, which
    know what their parent knows."""
    continuable: bool = False
    """Whether they stay for further tasks, by `send_message`, `interrupt_agent` and `list_agents`."""
    max_depth: Annotated[int, Meta(ge=0, le=8)] = 3
    """How deep they may be nested; 0 forbids them."""


class ToolsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tools beside those that the other tables offer."""

    add: tuple[Name, ...] = ()
    """Tools of installed packages, providers of the seam `tools`."""


class CredentialsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where secrets are looked up, which this file has by name only: in the environment first, then here."""

    file: Name | None = None
    """A TOML file of names and secrets, which nobody else may read (chmod 600)."""


class LlmTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that agents talk to."""

    provider: Name = "scripted"
    """Who reaches it, a provider of the seam `llm`: `openai` and all that speak like it, `anthropic`, or `scripted`,
    which needs neither network nor key."""
    model: Name | None = None
    """The name that the provider has for its model."""
    base_url: Name | None = None
    """Where it is reached, if not at the provider's own address."""
    key: SecretRef | None = None
    """The name of the credential that is its key; the provider's usual one if it is not given."""
    script: Name | None = None
    """What `scripted` plays: a JSON list of the model's turns."""
    options: dict[Name, Any] = {}
    """What a provider takes besides, which it checks by itself."""


class AgentLoopTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How agents take their turns."""

    max_parallel_tool_calls: Count = 10
    """How many calls of one answer run at a time, of those that may run beside others; 1 is one after another."""
    limit: Count = 50
    """How many times the model may be asked in one turn of a conversation."""
    session: Name | None = None
    """The session that `greenroom chat` logs and goes on with; it needs `journal.data` or `sessions.root`."""
    system: Name | None = None
    """What the agent of `greenroom chat` is told to be, in place of what it usually is."""


class ApprovalsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which calls of tools somebody has to approve of, and who."""

    tools: tuple[Name, ...] = ()
    """The tools whose calls need approval, each call by itself. There have to be such tools, but for those that an MCP
    server brings later, `mcp__<server>__<tool>`: until there is one of that name, every tool of every MCP server needs
    approval."""
    mode: Literal["ask", "never"] = "ask"
    """`never` refuses what needs approval without asking anybody."""
    terminal: Name | None = None
    """The terminal that is asked, one of `terminals.names`. If none is given, `greenroom chat` asks whoever runs it,
    and other commands refuse every such call, unless a module that they import listens to `approval/request`."""
    timeout: Seconds | None = None
    """Seconds until an unanswered request counts as refused by nobody; 0 means never, and without it the terminal's own
    timeout holds."""
    delegated: bool = False
    """Whether that terminal is asked on behalf of agents that work for other agents too, by name; if not, their calls
    are refused at once."""


class TimeoutTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A deadline for calls of tools."""

    seconds: Annotated[float, Meta(gt=0, le=1e9)]
    """How long a call may take."""
    patience: bool = True
    """Whether the clock stands still while a person is asked."""
    tools: tuple[Name, ...] | None = None
    """The tools that it is for; all if it is not given. There have to be such tools, but for those of MCP servers: see
    `approvals.tools`."""
    each_attempt: bool = False
    """Whether the deadline is for each attempt of `policies.retry` by itself; else it is for all of them together."""


class RetryTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Further attempts at calls that failed."""

    tools: Annotated[tuple[Name, ...], Meta(min_length=1)]
    """The tools it is for, which there have to be. Name only such as may run twice."""
    attempts: Annotated[int, Meta(ge=2)]
    """How many attempts there are in all."""
    delay: Seconds = 1.0
    """Seconds before the second attempt."""
    factor: Annotated[float, Meta(ge=1, le=100)] = 2.0
    """How many times longer each further pause is."""


class SpillTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Large results are kept elsewhere, and the model is shown both ends."""

    max_inline_bytes: Count
    """How many bytes of UTF-8 a result may have to be shown whole."""
    skip: tuple[Name, ...] = ("read",)
    """Tools whose results are always shown whole."""
    store: Name = "local"
    """Who keeps them, a provider of the seam `spill`."""
    root: Name | None = None
    """Where: for `local` a folder, without it one of the system's for temporary files."""


class RepeatsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reminder for a model that makes the same call again and again."""

    exclude: tuple[Name, ...] = ()
    """Tools whose calls do not count."""


class MetricsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Counts and durations of calls."""

    meter: Name = "opentelemetry"
    """Who takes them, a provider of the seam `telemetry`."""


class PoliciesTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Policies on tool calls. Each has a table of its own, and is not there without it."""

    timeout: TimeoutTable | None = None
    """A deadline."""
    retry: RetryTable | None = None
    """Further attempts."""
    spill: SpillTable | None = None
    """What becomes of large results."""
    repeats: RepeatsTable | None = None
    """What a model is told that goes in circles."""
    metrics: MetricsTable | None = None
    """Figures."""
    invariants: bool = False
    """Whether each call is checked for having one beginning, one end and one decision: for tests and trials."""


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All tables. A table that stands for something to be switched on is None where the file does not have it."""

    gateway: GatewayTable = GatewayTable()
    terminals: TerminalsTable = TerminalsTable()
    journal: JournalTable | None = None
    sessions: SessionsTable | None = None
    workflows: WorkflowsTable = WorkflowsTable()
    remote: RemoteTable = RemoteTable()
    workspaces: WorkspacesTable | None = None
    questions: QuestionsTable | None = None
    todos: TodosTable | None = None
    databases: DatabasesTable | None = None
    bash: BashTable | None = None
    subagents: SubagentsTable | None = None
    tools: ToolsTable = ToolsTable()
    credentials: CredentialsTable = CredentialsTable()
    llm: LlmTable = LlmTable()
    agent_loop: AgentLoopTable = AgentLoopTable()
    approvals: ApprovalsTable = ApprovalsTable()
    policies: PoliciesTable = PoliciesTable()


TABLES: Final[dict[str, type[Struct]]] = {
    "gateway": GatewayTable,
    "terminals": TerminalsTable,
    "journal": JournalTable,
    "sessions": SessionsTable,
    "workflows": WorkflowsTable,
    "remote": RemoteTable,
    "workspaces": WorkspacesTable,
    "questions": QuestionsTable,
    "todos": TodosTable,
    "databases": DatabasesTable,
    "bash": BashTable,
    "subagents": SubagentsTable,
    "tools": ToolsTable,
    "credentials": CredentialsTable,
    "llm": LlmTable,
    "agent_loop": AgentLoopTable,
    "approvals": ApprovalsTable,
    "policies": PoliciesTable,
    "policies.timeout": TimeoutTable,
    "policies.retry": RetryTable,
    "policies.spill": SpillTable,
    "policies.repeats": RepeatsTable,
    "policies.metrics": MetricsTable,
}
"""By the name of the table in the file; those with a dot stand in another one."""


def table_of(config: Config, name: str) -> Struct | None:
    """The table of that name in a configuration; None where the file does not have it."""
    found: Any = config
    for part in name.split("."):
        found = None if found is None else getattr(found, part)
    return cast("Struct | None", found)
