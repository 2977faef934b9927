"""The configuration: one TOML file, a table for each component."""

from greenroom.actors.config.loading import load_config, override, read_config
from greenroom.actors.config.tables import (
    TABLES,
    Config,
    DatabasesTable,
    GatewayTable,
    JournalTable,
    TerminalsTable,
    WorkflowsTable,
    WorkspacesTable,
)

__all__ = [
    "TABLES",
    "Config",
    "DatabasesTable",
    "GatewayTable",
    "JournalTable",
    "TerminalsTable",
    "WorkflowsTable",
    "WorkspacesTable",
    "load_config",
    "override",
    "read_config",
]
