"""Terminals: named parties that can be asked a form, and answer it whenever they like."""

from greenroom.actors.terminal.broker import Terminal
from greenroom.actors.terminal.durable import ASKS, DurableAsk, DurableAsks, open_durable_asks
from greenroom.actors.terminal.manager import TerminalManager
from greenroom.actors.terminal.notice import Notice, NoticeKind, Subscriber
from greenroom.actors.terminal.store import TERMINALS, JournalTerminalStore, MemoryTerminalStore, TerminalStore

__all__ = [
    "ASKS",
    "TERMINALS",
    "DurableAsk",
    "DurableAsks",
    "JournalTerminalStore",
    "MemoryTerminalStore",
    "Notice",
    "NoticeKind",
    "Subscriber",
    "Terminal",
    "TerminalManager",
    "TerminalStore",
    "open_durable_asks",
]
