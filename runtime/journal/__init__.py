"""The durable record: events in streams, and tables, in one SQLite file behind one writer."""

from greenroom.runtime.journal.file import check_journal
from greenroom.runtime.journal.follower import Follower
from greenroom.runtime.journal.journal import Journal, open_journal
from greenroom.runtime.journal.reader import Event, JournalReader, StreamInfo, open_reader
from greenroom.runtime.journal.recorder import Outcome
from greenroom.runtime.journal.steps import Append, End, Statement, Step
from greenroom.runtime.journal.tables import Migration, Table

__all__ = [
    "Append",
    "End",
    "Event",
    "Follower",
    "Journal",
    "JournalReader",
    "Migration",
    "Outcome",
    "Statement",
    "Step",
    "StreamInfo",
    "Table",
    "check_journal",
    "open_journal",
    "open_reader",
]
