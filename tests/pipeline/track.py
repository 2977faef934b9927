"""A registry on a pipeline of its own, with everything written down that happens to its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from greenroom.protocol.tools import ToolCall, ToolFailure, ToolResult, ToolSuccess
from greenroom.runtime.bus import Bus, Next
from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import Outcome
from greenroom.runtime.pipeline.pipeline import Pipeline
from greenroom.runtime.pipeline.verdicts import Review, Verdict
from greenroom.runtime.tools import Tool, ToolManager

__all__ = ["Log", "Track", "call"]


def call(name: str = "t", arguments: dict[str, Any] | None = None, id: str = "1", **aside: Any) -> ToolCall:
    return ToolCall(id, name, {} if arguments is None else arguments, **aside)


class Log:
    """A recorder that keeps everything, in order, until its disk is full: that is at a record beginning with `full`."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.settled: list[Settled] = []
        self.full: str | None = None

    def hears(self) -> bool:
        return True

    def approval_mode(self, call: Invocation) -> None:
        return None

    async def saved(self, call: Invocation) -> None:
        assert f"call {call.call_id}" in self.events, "it has begun"

    def called(self, call: Invocation) -> int:
        self._write(f"call {call.call_id}")
        return len(self.events) - 1

    def asked(self, request: ApprovalRequest) -> None:
        self._write(f"asked {request.call.call_id}")

    def decided(self, request: ApprovalRequest, decision: Decision) -> None:
        self._write(f"decided {request.call.call_id} {decision.kind}")

    def ended(self, settled: Settled, called: Any) -> None:
        assert self.events[called] == f"call {settled.call.call_id}", "it cites its own beginning"
        self._write(f"result {settled.call.call_id}")
        self.settled.append(settled)

    def _write(self, record: str) -> None:
        if self.full is not None and record.startswith(self.full):
            raise OSError("the disk is full")
        self.events.append(record)


class Track:
    """`seen` has the stages that were entered, `results` what `tools/result` told."""

    def __init__(self) -> None:
        self.bus = Bus()
        self.pipeline = Pipeline(self.bus)
        self.tools = ToolManager(pipeline=self.pipeline)
        self.pipeline.recorder = self.log = Log()
        self.seen: list[str] = []
        self.results: list[Settled] = []
        self.bus.on(self.pipeline.pre_execute, self._pre)
        self.bus.on(self.pipeline.execute, self._around)
        self.bus.on(self.pipeline.post_execute, self._post)
        self.bus.on(self.pipeline.result, self._result)

    def tool(self, execute: Callable[..., Any], name: str = "t", **handling: Any) -> None:
        self.tools.add(Tool(name, execute, handling=Handling(**handling)))

    def on(self, event: Any, answer: Callable[..., Any], *, prepend: bool = False) -> None:
        """A listener that answers with what `answer(payload)` gives, without asking those beneath."""

        async def listener(payload: Any, next: Next[Any]) -> Any:
            given = answer(payload)
            return await given if hasattr(given, "__await__") else given

        self.bus.on(event, listener, prepend=prepend)

    async def execute(self, name: str = "t", arguments: dict[str, Any] | None = None, **options: Any) -> ToolResult:
        return await self.tools.execute(call(name, arguments), **options)

    async def value(self, name: str = "t", arguments: dict[str, Any] | None = None) -> Any:
        result = await self.execute(name, arguments)
        assert isinstance(result, ToolSuccess), result
        return result.value

    async def error(self, name: str = "t", arguments: dict[str, Any] | None = None, **options: Any) -> str:
        result = await self.execute(name, arguments, **options)
        assert isinstance(result, ToolFailure), result
        return result.error

    @property
    def outcome(self) -> Any:
        """What the one call came to, as its observers were told."""
        (settled,) = self.results
        return settled.outcome

    async def _pre(self, call: Invocation, next: Next[Verdict]) -> Verdict:
        self.seen.append("pre")
        return await next()

    async def _around(self, call: Invocation, next: Next[Outcome]) -> Outcome:
        self.seen.append("around")
        return await next()

    async def _post(self, settled: Settled, next: Next[Review]) -> Review:
        self.seen.append("post")
        return await next()

    def _result(self, settled: Settled) -> None:
        self.seen.append("result")
        self.results.append(settled)
