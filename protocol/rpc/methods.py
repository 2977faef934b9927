"""Every method and notification of the gateway, each with the structs of its params and its result.

This is the only description of them: the gateway reads params and the client reads results by it, and `docs/rpc.md` is
generated from it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from greenroom.protocol.forms import Value
from greenroom.protocol.rpc.frames import RequestId
from greenroom.protocol.rpc.method import Keyed, Method, Notification, Params, Result
from greenroom.protocol.rpc.results import read_answer, read_tool_result
from greenroom.protocol.rpc.runs import (
    CANCEL_RUN,
    FOLLOW_RUN,
    LIST_RUNS,
    RESUME_RUN,
    RUN_EVENT,
    SHOW_RUN,
    SIGNAL_RUN,
    START_RUN,
)
from greenroom.protocol.rpc.streams import CLOSE_STREAM, OPEN_STREAM, STREAM_END, STREAM_ERROR, STREAM_ITEM
from greenroom.protocol.terminals import AnswerResult, PendingForm
from greenroom.protocol.tools import ToolDefinition, ToolResult
from greenroom.protocol.tree import TreeSnapshot

__all__ = [
    "ANSWER",
    "ASK",
    "ATTACH",
    "BYE",
    "CALL_TOOL",
    "CANCEL",
    "DETACH",
    "FORM_ANSWERED",
    "FORM_EXPIRED",
    "FORM_PENDING",
    "FORM_WITHDRAWN",
    "HELLO",
    "LIST_TERMINALS",
    "LIST_TOOLS",
    "METHODS",
    "NOTIFICATIONS",
    "OWN_NAMESPACES",
    "PENDING",
    "RELEASE",
    "SHUTDOWN",
    "TREE",
    "WITHDRAW",
    "AnswerForm",
    "AskTerminal",
    "AttachTerminal",
    "Attachment",
    "Bye",
    "CallTool",
    "CancelCall",
    "Cancellation",
    "DetachTerminal",
    "Detachment",
    "Farewell",
    "FormAnswered",
    "FormExpired",
    "FormPending",
    "FormWithdrawn",
    "Hello",
    "ListTerminals",
    "ListTools",
    "PendingList",
    "ReadPending",
    "ReadTree",
    "ReleaseAsk",
    "ReleasedAsk",
    "Shutdown",
    "SubmittedValues",
    "TerminalEvent",
    "TerminalInfo",
    "TerminalList",
    "ToolList",
    "Welcome",
    "WithdrawForm",
    "Withdrawal",
]

# -------------------------------------------------------------------- terminals


class ListTerminals(Params, frozen=True):
    """Which terminals there are, in the order in which they were added."""


class TerminalInfo(Result, frozen=True):
    """A terminal at a glance."""

    name: str
    pending: int
    """How many forms wait there."""
    operated: bool
    """An actor answers for it; otherwise it is for people and programs."""


class TerminalList(Result, frozen=True):
    """All terminals."""

    terminals: tuple[TerminalInfo, ...]


class AttachTerminal(Params, frozen=True):
    """See what is pending at a terminal, and be notified of whatever happens there from that moment on.

    Nothing falls between the two. An attachment ends with `terminal/detach` or with the connection; it outlives the
    terminal and holds again when one of the same name is added. Attaching again gives the forms anew and no second copy
    of each notification.
    """

    terminal: str


class Attachment(Result, frozen=True):
    """What an attached client starts from."""

    terminal: str
    pending: tuple[PendingForm, ...]
    """In the order in which they were parked."""
    remaining: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """By id, the milliseconds until a form expires; one that never does is left out."""
    following: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """The ids of further forms, which come next, each in a `terminal/pending`. Absent if all are here: they come in one
    message as long as it has about four mebibytes."""


class DetachTerminal(Params, frozen=True):
    """Be notified of that terminal no more."""

    terminal: str


class Detachment(Result, frozen=True):
    """Whether there was anything to end."""

    detached: bool


class ReadPending(Params, frozen=True):
    """The forms that are parked now, at one terminal or at all of them."""

    terminal: str | None = None
    """Null or absent: at all of them, in the order in which they were added."""


class PendingList(Result, frozen=True):
    """Parked forms, in the order in which they were parked."""

    pending: tuple[PendingForm, ...]


class AskTerminal(Keyed, frozen=True, kw_only=True):
    """Park a form at a terminal and wait for its answer, which is the result of the call.

    Cancelling the call withdraws the form. So does the end of the connection or, if the call has a `key`, the end of
    its client's grace. Refused with TARGET (`known`), SCHEMA
    (`problems`), DEADLOCK (`path`), LIMIT (`cap`) or EXPIRE (`reason`); a form that nobody answered ends as ABANDONED
    with the `reason` `timeout`, `stopped`, `removed`, `restarted` or `withdrawn`.

    With `durable` the form and its answer are recorded, for the client that said `rpc/hello` with this token: they
    outlive the connection, the client's calls and the server. Asking the same again with the same `durable` waits on,
    or gives the recorded answer, until `terminal/release`; cancelling the call leaves the form where it is. Refused
    also with HELLO, DURABLE (nothing is recorded here; or `fields` with passwords), TAKEN (it names another ask), and
    with FULL, READONLY, IO or CORRUPT if it cannot be recorded.
    """

    to: str
    schema: dict[str, Any]
    """The form's document, a `FormSchema`."""
    from_: str | None = msgspec.field(name="from", default=None)
    """In whose name it is asked: what that name waits for is part of the check for circles."""
    timeout: Annotated[float, msgspec.Meta(ge=0)] | msgspec.UnsetType | None = msgspec.UNSET
    """Milliseconds until it expires. Null: it never does. Absent: the terminal's own limit holds."""
    durable: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None
    """The client's own name for this question, the same one whenever it is asked again."""

    @property
    def repeatable(self) -> bool:
        return self.durable is not None


class SubmittedValues(Result, frozen=True):
    """The answer, with defaults in and disabled fields out."""

    values: dict[str, Any]


class AnswerForm(Keyed, frozen=True, kw_only=True):
    """Answer a form: all of the values are accepted, or nothing is changed and the form stays pending.

    A wrong terminal (`target`), id (`unknown`) or value (`rejected`, with the errors of the fields) is a result, not an
    error: somebody else may have answered first.
    """

    terminal: str
    id: str
    values: dict[str, Value | None]
    """By the name of the field; a field that is left out keeps its default, null takes it away."""


class WithdrawForm(Keyed, frozen=True, kw_only=True):
    """Take a form back in its asker's name: the asker's wait ends as ABANDONED, attached clients are notified.

    Refused with TARGET.
    """

    terminal: str
    id: str


class Withdrawal(Result, frozen=True):
    """Whether there was such a form."""

    withdrawn: bool


class ReleaseAsk(Keyed, frozen=True, kw_only=True):
    """Forget what was asked with this `durable`, and its answer. A form that is still pending is withdrawn.

    Refused with HELLO, DURABLE, and as an ask is that cannot be recorded.
    """

    durable: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]

    @property
    def repeatable(self) -> bool:
        return True


class ReleasedAsk(Result, frozen=True):
    """Whether there was such an ask."""

    released: bool


LIST_TERMINALS: Final[Method[ListTerminals, TerminalList]] = Method("terminal/list", ListTerminals, TerminalList)
ATTACH: Final[Method[AttachTerminal, Attachment]] = Method("terminal/attach", AttachTerminal, Attachment)
DETACH: Final[Method[DetachTerminal, Detachment]] = Method("terminal/detach", DetachTerminal, Detachment)
PENDING: Final[Method[ReadPending, PendingList]] = Method("terminal/pending", ReadPending, PendingList)
ASK: Final[Method[AskTerminal, SubmittedValues]] = Method("terminal/ask", AskTerminal, SubmittedValues)
ANSWER: Final[Method[AnswerForm, AnswerResult]] = Method("terminal/answer", AnswerForm, AnswerResult, read_answer)
WITHDRAW: Final[Method[WithdrawForm, Withdrawal]] = Method("terminal/withdraw", WithdrawForm, Withdrawal)
RELEASE: Final[Method[ReleaseAsk, ReleasedAsk]] = Method("terminal/release", ReleaseAsk, ReleasedAsk)


# -------------------------------------------------------------------- tools, the tree, calls


class ListTools(Params, frozen=True):
    """Which tools can be called, in the order in which they were added."""


class ToolList(Result, frozen=True):
    """The tools as a model is shown them."""

    tools: tuple[ToolDefinition, ...]


class CallTool(Keyed, frozen=True, kw_only=True):
    """Call a tool. What goes wrong in it, an unknown name included, is told in the result, not as an error.

    Cancelling the call cancels the tool. So does the end of the connection or, if the call has a `key`, the end of its
    client's grace.
    """

    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class ReadTree(Params, frozen=True):
    """Every actor of the runtime, and who waits for whom."""


class Hello(Params, frozen=True):
    """Say which client this is, so that its keyed calls outlive the connection and are found again on the next one.

    Refused with HELLO for an id that came with another token, or if the connection has said hello as somebody else, and
    with BUSY (`most`) if the token has as many clients as it may.
    """

    client: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{8,64}$")]
    """Made by the client, at random: who knows it can learn the outcomes of its calls."""


class Welcome(Result, frozen=True):
    """How long a client may be away."""

    resumed: bool
    """It was known already, and with it the calls that are under way."""
    visit: str
    """Another one whenever the server has forgotten the client in between."""
    grace: int
    """Milliseconds after its last connection has gone until its calls are cancelled and its forms withdrawn."""
    kept: int
    """Milliseconds that an outcome is kept."""
    message_size: int
    """The most bytes that a message of the client may have."""


class Bye(Params, frozen=True):
    """Say that this client will not come back: with its last connection it ends at once, its calls are cancelled and
    its forms withdrawn. Without this its grace begins then.

    Usually sent as a notification, before the connection is closed.
    """


class Farewell(Result, frozen=True):
    """Whether this connection had said hello."""

    known: bool


class CancelCall(Params, frozen=True):
    """Cancel a call of this connection by the id of its request, which is then answered with CANCELLED.

    Usually sent as a notification. A call that ends at the same moment is answered as if it had not been cancelled.
    """

    id: RequestId


class Cancellation(Result, frozen=True):
    """Whether such a call was under way."""

    cancelled: bool


LIST_TOOLS: Final[Method[ListTools, ToolList]] = Method("tool/list", ListTools, ToolList)
CALL_TOOL: Final[Method[CallTool, ToolResult]] = Method("tool/call", CallTool, ToolResult, read_tool_result)
TREE: Final[Method[ReadTree, TreeSnapshot]] = Method("system/tree", ReadTree, TreeSnapshot)
HELLO: Final[Method[Hello, Welcome]] = Method("rpc/hello", Hello, Welcome)
BYE: Final[Method[Bye, Farewell]] = Method("rpc/bye", Bye, Farewell)
CANCEL: Final[Method[CancelCall, Cancellation]] = Method("rpc/cancel", CancelCall, Cancellation)

METHODS: Final[dict[str, Method[Any, Any]]] = {
    method.name: method
    for method in (
        LIST_TERMINALS,
        ATTACH,
        DETACH,
        PENDING,
        ASK,
        ANSWER,
        WITHDRAW,
        RELEASE,
        LIST_TOOLS,
        CALL_TOOL,
        TREE,
        HELLO,
        BYE,
        CANCEL,
        START_RUN,
        LIST_RUNS,
        SHOW_RUN,
        FOLLOW_RUN,
        SIGNAL_RUN,
        RESUME_RUN,
        CANCEL_RUN,
        OPEN_STREAM,
        CLOSE_STREAM,
    )
}
"""By name, in the order in which they are documented."""

OWN_NAMESPACES: Final = frozenset(name.partition("/")[0] for name in METHODS)
"""What the names of the gateway's own methods begin with; remote methods have others."""


# -------------------------------------------------------------------- what the server tells by itself


class FormPending(Params, frozen=True):
    """A form was parked at a terminal to which the client is attached."""

    terminal: str
    form: PendingForm
    remaining: float | msgspec.UnsetType = msgspec.UNSET
    """Milliseconds until it expires; absent if it never does."""


class FormAnswered(Params, frozen=True):
    """A form was answered, by whomever. Its values are for its asker alone."""

    terminal: str
    id: str


class FormExpired(Params, frozen=True):
    """A form was taken away unanswered."""

    terminal: str
    id: str
    reason: str
    """`timeout`: nobody has answered in time. `stopped`, `removed`, `restarted`, `failed`, `ended` or `cancelled`: what
    has become of its terminal, or of the server. A client must take others, too."""


class FormWithdrawn(Params, frozen=True):
    """The asker of a form has gone, or has taken it back."""

    terminal: str
    id: str


TerminalEvent: TypeAlias = FormPending | FormAnswered | FormExpired | FormWithdrawn
"""What attached clients are notified of."""


class Shutdown(Params, frozen=True):
    """The server stops; it closes the connection next, with code 1001."""


FORM_PENDING: Final[Notification[FormPending]] = Notification("terminal/pending", FormPending)
FORM_ANSWERED: Final[Notification[FormAnswered]] = Notification("terminal/answered", FormAnswered)
FORM_EXPIRED: Final[Notification[FormExpired]] = Notification("terminal/expired", FormExpired)
FORM_WITHDRAWN: Final[Notification[FormWithdrawn]] = Notification("terminal/withdrawn", FormWithdrawn)
SHUTDOWN: Final[Notification[Shutdown]] = Notification("system/shutdown", Shutdown)

NOTIFICATIONS: Final[dict[str, Notification[Any]]] = {
    notification.name: notification
    for notification in (
        FORM_PENDING,
        FORM_ANSWERED,
        FORM_EXPIRED,
        FORM_WITHDRAWN,
        RUN_EVENT,
        STREAM_ITEM,
        STREAM_END,
        STREAM_ERROR,
        SHUTDOWN,
    )
}
"""By name, in the order in which they are documented."""
