"""Sessions: agents' logs, live in memory and kept by whoever keeps them."""

from greenroom.actors.session.journal import JournalLogs, JournalPersistence
from greenroom.actors.session.jsonl import JsonlPersistence
from greenroom.actors.session.manager import SessionAppended, SessionManager, SessionOpened
from greenroom.actors.session.persistence import MemoryPersistence, Persistence, Stored
from greenroom.actors.session.session import Session

__all__ = [
    "JournalLogs",
    "JournalPersistence",
    "JsonlPersistence",
    "MemoryPersistence",
    "Persistence",
    "Session",
    "SessionAppended",
    "SessionManager",
    "SessionOpened",
    "Stored",
]
