"""Databases: typed tables over SQLite or other storage, one actor each."""

from greenroom.actors.database.battery import check_driver
from greenroom.actors.database.database import Database
from greenroom.actors.database.drivers import json_driver, memory_driver, sqlite_driver
from greenroom.actors.database.files import FILE, DatabaseFiles
from greenroom.actors.database.plain import Driver
from greenroom.actors.database.resolver import MEMORY_DRIVERS, DatabaseResolver, DriverFactory
from greenroom.actors.database.session import Session
from greenroom.actors.database.storage import Storage
from greenroom.actors.database.stores import (
    DEFINITION_TABLES,
    DefinitionStore,
    MemoryDefinitionStore,
    TableDefinitionStore,
)
from greenroom.actors.database.table import Table
from greenroom.actors.database.transaction import Transaction

__all__ = [
    "DEFINITION_TABLES",
    "FILE",
    "MEMORY_DRIVERS",
    "Database",
    "DatabaseFiles",
    "DatabaseResolver",
    "DefinitionStore",
    "Driver",
    "DriverFactory",
    "MemoryDefinitionStore",
    "Session",
    "Storage",
    "Table",
    "TableDefinitionStore",
    "Transaction",
    "check_driver",
    "json_driver",
    "memory_driver",
    "sqlite_driver",
]
