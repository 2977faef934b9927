"""What the methods about runs of workflows do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from greenroom.actors.gateway.handlers import Handlers, denied, grants_of
from greenroom.actors.workflow import Run, WorkflowManager
from greenroom.actors.workflow.picture import all_runs, find_run, picture_of, run_info
from greenroom.protocol.errors import RpcError, WorkflowError
from greenroom.protocol.rpc import (
    CANCEL_RUN,
    FOLLOW_RUN,
    LIST_RUNS,
    RESUME_RUN,
    RUN_EVENT,
    SHOW_RUN,
    SIGNAL_RUN,
    START_RUN,
    CancelRun,
    Followed,
    FollowRun,
    ListRuns,
    ResumeRun,
    RunHappened,
    RunList,
    ShowRun,
    SignalRun,
    SignalSent,
    StartRun,
    frames,
)
from greenroom.protocol.runs import RunInfo, RunPicture
from greenroom.protocol.workflows import is_terminal

if TYPE_CHECKING:
    from greenroom.actors.gateway.calls import Call

__all__ = ["RUN_HANDLERS"]

RUN_HANDLERS: Final = Handlers()
"""By the name of the method."""


@RUN_HANDLERS.serves(START_RUN)
async def _start(call: Call, params: StartRun) -> RunInfo:
    id: Any = params.definition.get("id")
    if isinstance(id, str) and not grants_of(call).may_drive(id):
        raise denied(f"start the run {id}", "drive")
    return run_info(await _workflows(call).start(params.definition))


@RUN_HANDLERS.serves(LIST_RUNS)
async def _list(call: Call, params: ListRuns) -> RunList:
    runs = await all_runs(_workflows(call), status=params.status)
    return RunList(runs=tuple(run for run in runs if grants_of(call).may_see(run.id)))


@RUN_HANDLERS.serves(SHOW_RUN)
async def _show(call: Call, params: ShowRun) -> RunPicture:
    run = await _run(call, params.run)
    return picture_of(run, call.session.services.snapshot())


@RUN_HANDLERS.serves(FOLLOW_RUN)
async def _follow(call: Call, params: FollowRun) -> Followed:
    if call.id is None:
        raise RpcError("REQUEST", "Following a run needs an id: its events are told under that.")
    run = await _run(call, params.run)
    async for event in run.events(params.after):
        happened = RunHappened(call=call.id, run=run.id, event=event)
        await call.session.tell(frames.notification(RUN_EVENT.name, happened))
    return Followed(run=run.id, status=run.status, last=run.last)


@RUN_HANDLERS.serves(SIGNAL_RUN)
async def _signal(call: Call, params: SignalRun) -> SignalSent:
    run = await _driven(call, params.run, "signal")
    if run.over:
        raise _not_under_way(run, "takes no signals")
    await run.signal(params.name, params.value)
    return SignalSent(run=run.id, name=params.name)


@RUN_HANDLERS.serves(RESUME_RUN)
async def _resume(call: Call, params: ResumeRun) -> RunInfo:
    await _driven(call, params.run, "resume")
    return run_info(await _workflows(call).recover(params.run))


@RUN_HANDLERS.serves(CANCEL_RUN)
async def _cancel(call: Call, params: CancelRun) -> RunInfo:
    run = await _driven(call, params.run, "cancel")
    if run.over and not is_terminal(run.status):
        raise _not_under_way(run, "cannot be cancelled")
    await run.cancel()
    return run_info(run)


def _workflows(call: Call) -> WorkflowManager:
    return call.session.services.workflows


async def _driven(call: Call, id: str, verb: str) -> Run:
    """The run of that id, for a caller who may steer it. Raises as `_run` does, and RpcError DENIED."""
    run = await _run(call, id)
    if not grants_of(call).may_drive(id):
        raise denied(f"{verb} the run {id}", "drive")
    return run


async def _run(call: Call, id: str) -> Run:
    """The run of that id; one that the caller may not see is as if it were not there: WorkflowError UNKNOWN."""
    return await find_run(_workflows(call), id, may_see=grants_of(call).may_see)


def _not_under_way(run: Run, consequence: str) -> WorkflowError:
    over = is_terminal(run.status)
    way_out = "" if over else " Resume it first."
    return WorkflowError(
        "TRANSITION",
        f"The run {run.id} is {run.status if over else 'not under way here'}, and {consequence}.{way_out}",
        {"id": run.id, "status": run.status},
    )
