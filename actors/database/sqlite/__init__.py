"""SQLite as the storage of databases: queries become parameterized statements whose results are those of the rules."""

from greenroom.actors.database.sqlite.schema import create, read_stamp, write_stamp
from greenroom.actors.database.sqlite.storage import MEMORY, SqliteStorage

__all__ = ["MEMORY", "SqliteStorage", "create", "read_stamp", "write_stamp"]
