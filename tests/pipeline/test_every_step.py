"""Calls under every policy at once, cancelled or stopped at every moment at which they can be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import trio
from trio.testing import MockClock

from greenroom.actors.approver import terminal_approver
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.tools import ToolResult
from greenroom.runtime.bus import Next
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.verdicts import Allow, Ask, Verdict
from greenroom.runtime.policies import (
    CheckedRecorder,
    LocalSpill,
    RepeatReminder,
    retry_policy,
    spill_policy,
    timeout_policy,
)
from greenroom.runtime.tools import Tool
from tests.cancelling import Doomed, at_every_step
from tests.pipeline.track import Log, call


class Stage:
    """A runtime with all policies, whose `ann` allows everything; `press` calls another tool, `fail` fails twice."""

    def __init__(self, runtime: Runtime, folder: Path) -> None:
        self.runtime = runtime
        self.log = Log()
        self.told: list[str] = []
        runtime.pipeline.recorder = self.recorder = CheckedRecorder(self.log)
        runtime.terminals.add("ann")
        runtime.tools.add(Tool("press", self.press, handling=Handling(concurrent=True)))
        runtime.tools.add(Tool("fail", self.fail, handling=Handling(concurrent=True)))
        runtime.tools.add(Tool("wait", lambda: "x" * 50))
        self.attempts = 0
        on = runtime.bus.on
        on("tools/pre-execute", self.gate)
        on("approval/request", terminal_approver(runtime.terminals, "ann"))
        on("tools/execute", retry_policy(["fail"], delay=0))
        on("tools/execute", timeout_policy(60))
        on("tools/post-execute", RepeatReminder())
        on("tools/post-execute", spill_policy(LocalSpill(folder), max_inline_bytes=10), prepend=True)
        on("tools/result", self.observe)

    async def gate(self, call: Invocation, next: Next[Verdict]) -> Verdict:
        return Ask() if call.name == "press" else Allow()

    async def press(self) -> str:
        await self.runtime.tools.execute(call("wait", id="nested"))
        return "pressed"

    async def fail(self) -> str:
        self.attempts += 1
        await trio.lowlevel.checkpoint()
        if self.attempts < 3:
            raise ConnectionError("no route")
        return "at last"

    def observe(self, settled: Settled) -> None:
        self.told.append(settled.call.call_id)

    async def answering(self) -> None:
        while True:
            for record in self.runtime.terminals.pending("ann"):
                await self.runtime.terminals.answer("ann", record.id, {"allow": True})
            await trio.lowlevel.checkpoint()

    async def batch(self, stop: Cancel | None = None) -> list[ToolResult]:
        calls = [call("press", id="1"), call("fail", id="2"), call("wait", id="3")]
        return await self.runtime.tools.execute(calls, stop=stop)

    def is_whole(self) -> None:
        """Each call that has begun has ended once, each question was decided on once, and nothing is left."""
        events = Counter(self.log.events)
        for word, end in (("call ", "result "), ("asked ", "decided ")):
            begun = sorted(event.removeprefix(word) for event in events.elements() if event.startswith(word))
            ended = sorted(event.split()[1] for event in events.elements() if event.startswith(end))
            assert begun == ended, self.log.events
        assert sorted(self.told) == sorted(settled.call.call_id for settled in self.log.settled)
        assert (self.recorder.open, self.runtime.terminals.pending()) == (0, [])


async def test_a_batch_that_is_cancelled_at_any_moment_leaves_a_whole_record(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime, trio.open_nursery() as nursery:
            stage = Stage(runtime, tmp_path)
            nursery.start_soon(stage.answering)
            ended = await doomed(stage.batch)
            nursery.cancel_scope.cancel()
            if not ended.cancelled:
                assert [result.success for result in ended.value] == [True, True, True]
            stage.is_whole()

    assert await at_every_step(scenario) > 20


async def test_a_batch_that_is_stopped_at_any_moment_has_a_result_for_each_call(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    steps = 0
    late = False
    while not late:
        async with open_runtime() as runtime, trio.open_nursery() as nursery:
            stage = Stage(runtime, tmp_path)
            nursery.start_soon(stage.answering)
            stop = Cancel()

            async def stopping(stop: Cancel, steps: int) -> None:
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                stop.set("enough")

            nursery.start_soon(stopping, stop, steps)
            results = await stage.batch(stop)
            late = not stop.is_set()
            nursery.cancel_scope.cancel()
            assert [result.id for result in results] == ["1", "2", "3"]
            stage.is_whole()
            codes = {getattr(settled.outcome, "code", None) for settled in stage.log.settled}
            assert codes <= {None, "ABORTED", "ABORTED_BEFORE_DISPATCH", "TOOL"}, "the last is an attempt that failed"
        steps += 1
    assert steps > 10
