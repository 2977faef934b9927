"""The methods and the notification about runs of workflows."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

from greenroom.protocol.rpc.frames import RequestId
from greenroom.protocol.rpc.method import Keyed, Method, Notification, Params, Result
from greenroom.protocol.runs import RunInfo, RunPicture
from greenroom.protocol.workflows import Status, WorkflowEvent

__all__ = [
    "CANCEL_RUN",
    "FOLLOW_RUN",
    "LIST_RUNS",
    "RESUME_RUN",
    "RUN_EVENT",
    "SHOW_RUN",
    "SIGNAL_RUN",
    "START_RUN",
    "CancelRun",
    "FollowRun",
    "Followed",
    "ListRuns",
    "ResumeRun",
    "RunHappened",
    "RunList",
    "ShowRun",
    "SignalRun",
    "SignalSent",
    "StartRun",
]

RunId: TypeAlias = Annotated[str, Meta(min_length=1)]


class StartRun(Keyed, frozen=True, kw_only=True):
    """Start a workflow, and do not wait for it. Its tasks can only name behaviours that the server was given.

    The same definition under the same id is the same run: one that is under way, or over, is told as it is, and one
    that was cut off goes on. Refused with TRANSITION for another definition under an id that is taken and for a
    behaviour that is not known, and with MUTATION or RESTORE for what is no definition.
    """

    definition: dict[str, Any]
    """A whole definition: `id`, `name` and `phases` with their `tasks`."""

    @property
    def repeatable(self) -> bool:
        return True


class ListRuns(Params, frozen=True):
    """Which runs there are: those under way or over in this process, in order of their start, then stored ones."""

    status: tuple[Status, ...] | None = None
    """Null or absent: whatever their status."""


class RunList(Result, frozen=True):
    """Runs at a glance."""

    runs: tuple[RunInfo, ...]


class ShowRun(Params, frozen=True):
    """One run as it stands, with whom it waits for. Refused with UNKNOWN (`known`)."""

    run: RunId


class ResumeRun(Keyed, frozen=True, kw_only=True):
    """Take up a stored run that was cut off or suspended; nothing that is recorded of it is done again.

    One that is under way, or over, is told as it is. Refused with UNKNOWN, and with RESTORE for one that was stopped,
    or whose behaviours the server does not know.
    """

    run: RunId

    @property
    def repeatable(self) -> bool:
        return True


class CancelRun(Keyed, frozen=True, kw_only=True):
    """Stop a run with everything beneath it; nothing of it is left when this is answered.

    One that is over is told as it is. Refused with UNKNOWN, and with TRANSITION for one that is not under way here.
    """

    run: RunId

    @property
    def repeatable(self) -> bool:
        return True


class SignalRun(Keyed, frozen=True, kw_only=True):
    """Send a signal to the tasks of a run, those to come included; it is stored when this is answered.

    Refused with UNKNOWN, and with TRANSITION for a run that is not under way here.
    """

    run: RunId
    name: Annotated[str, Meta(min_length=1)]
    value: Any = None


class SignalSent(Result, frozen=True):
    """The signal was sent."""

    run: str
    name: str


class FollowRun(Params, frozen=True):
    """Be told what happens in a run, as long as this call goes on: each event in a `run/event`, in order.

    It begins with what has happened since event number `after`, and is answered when the run is over or suspended.
    Cancelling the call ends it. Whoever comes back after a lost connection goes on behind the last event that it has
    seen. A client that reads slowly is told slowly. Refused with UNKNOWN, with GAP if events behind `after` are not
    kept any more (`first` is the next one that is), and as a notification, which nobody could be told by.
    """

    run: RunId
    after: Annotated[int, Meta(ge=0)] = 0


class Followed(Result, frozen=True):
    """Nothing more happens in the run."""

    run: str
    status: Status
    """`pending` or `running` if it was suspended."""
    last: int
    """The number of its last event."""


class RunHappened(Params, frozen=True):
    """Something happened in a run that the client follows."""

    call: RequestId
    """The id of the request that follows it."""
    run: str
    event: WorkflowEvent


START_RUN: Final[Method[StartRun, RunInfo]] = Method("run/start", StartRun, RunInfo)
LIST_RUNS: Final[Method[ListRuns, RunList]] = Method("run/list", ListRuns, RunList)
SHOW_RUN: Final[Method[ShowRun, RunPicture]] = Method("run/show", ShowRun, RunPicture)
FOLLOW_RUN: Final[Method[FollowRun, Followed]] = Method("run/follow", FollowRun, Followed)
SIGNAL_RUN: Final[Method[SignalRun, SignalSent]] = Method("run/signal", SignalRun, SignalSent)
RESUME_RUN: Final[Method[ResumeRun, RunInfo]] = Method("run/resume", ResumeRun, RunInfo)
CANCEL_RUN: Final[Method[CancelRun, RunInfo]] = Method("run/cancel", CancelRun, RunInfo)
RUN_EVENT: Final[Notification[RunHappened]] = Notification("run/event", RunHappened)
