"""What can be configured: a struct for each table of the file, with its defaults and what each key means.

The text beneath a key is what `greenroom config explain` and docs/config.md say of it. Keys have the names of the
flags of `greenroom serve` where there is a flag, which then wins over the file.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

__all__ = [
    "TABLES",
    "Config",
    "DatabasesTable",
    "GatewayTable",
    "JournalTable",
    "TerminalsTable",
    "WorkflowsTable",
    "WorkspacesTable",
]

Port = Annotated[int, Meta(ge=0, le=65_535)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Count = Annotated[int, Meta(ge=1)]
Name = Annotated[str, Meta(min_length=1)]


class GatewayTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The port at which people and programs come in."""

    host: Name = "127.0.0.1"
    """The address to listen on. Without access tokens only this machine's own addresses are allowed."""
    port: Port = 8642
    """The port to listen on; 0 takes a free one."""
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


class WorkflowsTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Runs of workflows that clients may start."""

    functions: Name | None = None
    """A module of the current folder: its public functions, or what it calls `functions`, are the behaviours."""


class WorkspacesTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tool `workspace`. Without this table it is not offered."""

    roots: Annotated[tuple[Name, ...], Meta(min_length=1)]
    """The folders whose files it reads and changes; the first is the active one."""


class DatabasesTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tool `database`. Without this table it is not offered."""

    files: dict[Name, Name]
    """The name of each database and the file that keeps it: JSON if it ends with .json, SQLite otherwise."""


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All tables. A table that stands for something to be switched on is None where the file does not have it."""

    gateway: GatewayTable = GatewayTable()
    terminals: TerminalsTable = TerminalsTable()
    journal: JournalTable | None = None
    workflows: WorkflowsTable = WorkflowsTable()
    workspaces: WorkspacesTable | None = None
    databases: DatabasesTable | None = None


TABLES: Final[dict[str, type[Struct]]] = {
    "gateway": GatewayTable,
    "terminals": TerminalsTable,
    "journal": JournalTable,
    "workflows": WorkflowsTable,
    "workspaces": WorkspacesTable,
    "databases": DatabasesTable,
}
"""By the name of the table in the file."""
