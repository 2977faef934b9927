"""Every error greenroom raises on purpose, in one tree.

::

    GreenroomError(code, message, context)
    ├── Deadlock                 mixin: a wait that would close a circle; `path` names it
    ├── ToolError                TOOL TOOL_TIMEOUT DEPTH DEADLOCK EXPIRE ANSWER DATABASE RELATION
    │   └── ToolDeadlock         (also a Deadlock)
    ├── FormError                SCHEMA FIELD CONTROL SETTLED ABANDONED
    ├── TerminalError            TARGET DEADLOCK LIMIT EXPIRE DESTROYED INVALID CANCEL DRIVER DURABLE TAKEN
    │   └── TerminalDeadlock     (also a Deadlock)
    ├── PatternError             INVALID LOOKAROUND BACKREFERENCE REPEAT LENGTH
    ├── WorkflowError            TRANSITION RESTORE MUTATION SCHEDULE EXPIRE UNKNOWN GAP
    ├── DatabaseError            CLOSED NOT_FOUND CONFLICT VALIDATION ABORTED MIGRATION CONFORMANCE DRIVER
    ├── RelationError            INVALID UNKNOWN_RELATION NOT_THROUGH
    ├── WorkspaceError           MODALITY RANGE PATTERN UNMATCHED AMBIGUOUS SURROGATE PATH CHANGED LIMIT IO
    ├── AgentError               CONCURRENCY UNKNOWN EXISTS PLACE PARTIAL SESSION INPUT INBOX_FULL
    │   ├── AgentJobError        a job that ended before its agent was done; `partial` has the result
    │   └── SubagentError        UNSUPPORTED_CAPABILITY NOT_COMPLETED NOT_RESUMABLE ACTIVATION_CLOSING UNAUTHORIZED
    │                            PARENT_UNAVAILABLE PERSISTENCE_UNAVAILABLE LIMIT
    ├── ConversationError        SUMMARIZER SECTIONS LOGGED
    ├── ProcessError             SPAWN WORKDIR
    ├── ProviderError            AUTH REQUEST RATE OVERLOAD SERVER TIMEOUT NETWORK TRUNCATED PROTOCOL ABORTED
    ├── JobError                 UNKNOWN FOREIGN OWNER LIMIT
    ├── JournalError             OWNED FOREIGN NEWER CORRUPT READONLY FULL IO BUSY REFUSED STALE ENDED GAP CLOSED
    ├── SessionError             SESSION_NOT_FOUND SESSION_NOT_LIVE SESSION_ALREADY_EXISTS INVALID_BOUNDARY OPEN_TURN
    │                            INVALID ORDER REENTRANT DISPOSED UNSUPPORTED CORRUPT OWNED IO
    ├── ActorError               STOPPED MAILBOX_FULL UNKNOWN RESTARTS DEADLOCK
    │   └── ActorDeadlock        (also a Deadlock)
    ├── BridgeError              CONNECT STATUS OVERFLOW SCHEMA ANSWER
    ├── RpcError                 what a peer answered, or what was wrong with its frame
    ├── RemoteError              `<domain>/<reason>`: what a remote method refuses; `gateway/...` at its boundary
    ├── ConfigError
    ├── SeamError                NO_PROVIDER PROVIDER_AMBIGUOUS DUPLICATE_PROVIDER BROKEN_PROVIDER
    └── InvariantError           what can never be, was

A code is stable and meant for programs; a message is for people and models, and says which name was meant, which are
known and what to do; a context holds the same facts as JSON values. Secrets appear in none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from greenroom.protocol.agents import AgentResult, ProviderResult

__all__ = [
    "ActorDeadlock",
    "ActorError",
    "AgentError",
    "AgentJobError",
    "BridgeError",
    "ConfigError",
    "ConversationError",
    "DatabaseError",
    "Deadlock",
    "FormError",
    "GreenroomError",
    "InvariantError",
    "JobError",
    "JournalError",
    "PatternError",
    "ProcessError",
    "ProviderError",
    "RelationError",
    "RemoteError",
    "RpcError",
    "SeamError",
    "SessionError",
    "SubagentError",
    "TerminalDeadlock",
    "TerminalError",
    "ToolDeadlock",
    "ToolError",
    "WorkflowError",
    "WorkspaceError",
]


class GreenroomError(Exception):
    """The root of every error that greenroom raises on purpose.

    `code` is one of the words that the subclass documents, `message` a sentence for a person or a model, and `context`
    a dict of JSON values (an empty one if there is nothing to add).
    """

    code: str
    message: str
    context: dict[str, Any]

    def __init__(self, code: str, message: str, context: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.context = dict(context or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, self.message, self.context)

    def encode(self) -> dict[str, Any]:
        """`{code, message, context}`, as it crosses a wire."""
        return {"code": self.code, "message": self.message, "context": self.context}


class Deadlock(GreenroomError):
    """A wait that would have closed a circle, refused before it began. `context["path"]` names the circle."""

    @property
    def path(self) -> list[str]:
        """The parties of the circle, the refused one first and last."""
        return cast("list[str]", self.context["path"])


class ToolError(GreenroomError):
    """A tool call that cannot be carried out:

    TOOL, TOOL_TIMEOUT, DEPTH, DEADLOCK, EXPIRE, ANSWER, DATABASE, RELATION. Of tools on files, FS_NOT_FOUND,
    FS_NOT_REGULAR_FILE, FS_NOT_TEXT, FS_TOO_LARGE, FS_PATH, FS_FAILED, FS_NOT_OBSERVED, FS_STALE_VERSION,
    FS_EDIT_NOT_FOUND, FS_AMBIGUOUS_EDIT, SEARCH_INVALID_PATTERN, SEARCH_RAW_OUTPUT_OVERFLOW, SEARCH_FAILED. Of
    questions to a person, EMPTY_QUESTIONS, NO_PROVIDER, ASK_ABORTED, CALLER_NOT_LIVE, DELEGATED_CALLER.
    """


class ToolDeadlock(Deadlock, ToolError):
    """A tool call refused because it would wait in a circle (code DEADLOCK)."""


class FormError(GreenroomError):
    """A form used against its schema or after its end: SCHEMA, FIELD, CONTROL, SETTLED or ABANDONED."""


class TerminalError(GreenroomError):
    """An ask that cannot be parked, or a terminal that cannot be or is gone:

    TARGET, DEADLOCK, LIMIT, EXPIRE, DESTROYED, INVALID, CANCEL, DRIVER; of durable asks, DURABLE and TAKEN.
    """


class TerminalDeadlock(Deadlock, TerminalError):
    """An ask refused because it would wait in a circle (code DEADLOCK)."""


class PatternError(GreenroomError):
    """A pattern that is no ECMAScript pattern, or that no linear matcher can hold:

    INVALID, LOOKAROUND, BACKREFERENCE, REPEAT, LENGTH.
    """


class WorkflowError(GreenroomError):
    """A workflow that cannot be defined, run or resumed.

    TRANSITION (an illegal move, a workflow that cannot be run), RESTORE (a snapshot or a value that cannot be read),
    MUTATION (a definition, an edit, a report or an option that is refused), SCHEDULE (a time that is none), EXPIRE (a
    signal that did not come), UNKNOWN (no such run), GAP (events that are not kept any more).
    """


class DatabaseError(GreenroomError):
    """A database call that was refused."""


class RelationError(GreenroomError):
    """A relation that is not declared or cannot be followed."""


class WorkspaceError(GreenroomError):
    """A workspace operation that was refused.

    Any: MODALITY, RANGE, PATTERN, UNMATCHED, AMBIGUOUS, SURROGATE, LIMIT. A directory's: PATH, CHANGED, IO.
    """


class AgentError(GreenroomError):
    """An agent that cannot do what it is asked to.

    CONCURRENCY (it runs, and two runs would share what only one may have), UNKNOWN (a registry has nothing of that
    name), EXISTS (its id is taken), PLACE (it lives nowhere), PARTIAL (see `AgentJobError`), SESSION (its session is
    another agent's), INPUT and INBOX_FULL (what is put into its inbox is no text, or one too many).
    """


class AgentJobError(AgentError):
    """A job whose agent stopped or ran out of turns before it was done (code PARTIAL)."""

    partial: AgentResult | None = None
    """What there is of the result."""


class SubagentError(AgentError):
    """A sub-agent that cannot be begun, reached or waited for.

    UNSUPPORTED_CAPABILITY (its provider cannot do what is asked for), LIMIT (its parent has too many at work),
    PARENT_UNAVAILABLE (there is no agent above it to be told, or none any more), NOT_COMPLETED (it ended before it was
    done), UNAUTHORIZED (whoever calls is not above it), NOT_RESUMABLE (it works on one task and takes no more),
    ACTIVATION_CLOSING (it is ending), PERSISTENCE_UNAVAILABLE (it has ended, and nothing of it is stored).
    """


class ConversationError(GreenroomError):
    """A conversation that cannot be folded: SUMMARIZER (it has none), SECTIONS (a cap below one). LOGGED: one that is
    read out of a session's log, from which nothing is removed."""


class ProviderError(GreenroomError):
    """A model that did not answer, or not to its end.

    AUTH, REQUEST (it refuses what was sent), RATE, OVERLOAD, SERVER, TIMEOUT, NETWORK, TRUNCATED (it stopped before the
    end of its answer), PROTOCOL (it sent what is no answer), ABORTED (it was told to stop). The context has `status`
    (of HTTP), `retry_after` (seconds) and `retryable` where there are such, and as `partial` the text that had come.
    """

    partial: ProviderResult | None = None
    """All that had come by then."""

    @property
    def kind(self) -> str:
        """The code in lower case."""
        return self.code.lower()

    @property
    def status(self) -> int | None:
        """The HTTP status, if there was one."""
        return self.context.get("status")

    @property
    def retryable(self) -> bool:
        """The same request may well be answered another time."""
        return bool(self.context.get("retryable"))

    @property
    def retry_after(self) -> float | None:
        """After how many seconds the server would take another request, if it said so."""
        return self.context.get("retry_after")


class ProcessError(GreenroomError):
    """A command that cannot be started: SPAWN (the system refuses it), WORKDIR (its directory is none, or lies outside
    of where it may be)."""


class JobError(GreenroomError):
    """A job that cannot be started or touched.

    UNKNOWN (there is none of that id, or none any more), FOREIGN (it is another's), OWNER (whoever is to own it does
    not live), LIMIT (its owner has as many as may run).
    """


class JournalError(GreenroomError):
    """A journal that cannot be opened, written or read.

    Opening: OWNED (another process writes it), FOREIGN, NEWER, CORRUPT, READONLY. Writing: FULL, READONLY, IO, CORRUPT,
    BUSY (worth another try), REFUSED, STALE, ENDED (this unit, whenever it is tried). Reading: GAP. Any: CLOSED.
    """


class SessionError(GreenroomError):
    """A session's log that cannot be opened, appended to or forked.

    SESSION_NOT_FOUND (nothing of that id is stored), SESSION_NOT_LIVE (it is stored, and not open),
    SESSION_ALREADY_EXISTS; forking: INVALID_BOUNDARY (no event has that number), OPEN_TURN (the turn in which it stands
    is not over there). Appending, and nothing was appended: INVALID (data that is none of its type), ORDER (it cannot
    come after what stands there), DISPOSED. REENTRANT (within a listener for which the session waits). Opening:
    UNSUPPORTED (a version or a type that is unknown), CORRUPT, OWNED (another process writes it). IO (the disk).
    """


class ActorError(GreenroomError):
    """An actor that cannot be reached or started: STOPPED, MAILBOX_FULL, UNKNOWN, RESTARTS or DEADLOCK."""


class ActorDeadlock(Deadlock, ActorError):
    """A wait between actors refused because it would close a circle (code DEADLOCK)."""


class BridgeError(GreenroomError):
    """An exchange over a bridge that failed, an event stream one way and POST the other.

    CONNECT (no connection, or one that broke), STATUS (what HTTP refused), OVERFLOW (an event too large to hold),
    SCHEMA (a form that cannot be shown), ANSWER (a reply that cannot be used).
    """


class RpcError(GreenroomError):
    """A JSON-RPC exchange that failed, as the peer reported it or as the frame deserved."""


class RemoteError(GreenroomError):
    """What a remote method refuses, which its caller gets as it is: raise it with a code such as `release/frozen`.

    A code that ends with `/not-found` says that something is not there. What goes wrong between the wire and the method
    has a code that begins with `gateway/`: what was sent is no call (`input-invalid`) or does not fit the method
    (`arguments-invalid`), what the method gave back is not what it says (`result-invalid`), an id that stands for
    something (`lookup-not-found`, `lookup-failed`, `lookup-unavailable`), who is to answer (`service-unavailable`,
    `method-unavailable`, `definition-unavailable`), and anything else (`internal`).
    """


class ConfigError(GreenroomError):
    """A configuration that cannot be used."""


class SeamError(GreenroomError):
    """A place that others may fill, filled by nobody who can be used.

    NO_PROVIDER (none, or none of that name), PROVIDER_AMBIGUOUS (several, and none was chosen), DUPLICATE_PROVIDER (the
    name, or the one place there is, is taken), BROKEN_PROVIDER (it cannot be loaded, or does not do what it should).
    The context has `seam`, and `provider` and `by` (whose it is) where there is one.
    """


class InvariantError(GreenroomError):
    """Something that can never be, was: a fault of a program, not of its input. No announcement contains it."""
