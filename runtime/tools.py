"""The tool registry: described functions by name, and calls of them that always come back as data.

::

    class Add(Struct):
        \"\"\"Two numbers.\"\"\"
        a: int
        b: int

    tools = ToolManager()
    tools.add(Tool("add", lambda numbers: numbers.a + numbers.b, parameters=Add, description="Adds two numbers."))
    result = await tools.execute(ToolCall("1", "add", {"a": 2, "b": "5"}))
    assert result == ToolSuccess(id="1", name="add", value=7)

A registry is a working set: one for each agent, never a global.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, final, overload
from uuid import uuid4

import trio

from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas import (
    NotJson,
    Schema,
    Variants,
    advertise,
    parse_json_value,
)
from greenroom.protocol.tools import ToolCall, ToolDefinition, ToolFailure, ToolResult, ToolSuccess
from greenroom.runtime.bus import Bus
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.context import current_actor, current_node
from greenroom.runtime.pipeline.batch import run_batch
from greenroom.runtime.pipeline.execution import Execution, current_invocation
from greenroom.runtime.pipeline.handling import PLAIN
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.outcomes import Outcome, ToolFail, ToolOk, error_text
from greenroom.runtime.pipeline.pipeline import Pipeline
from greenroom.runtime.pipeline.snapshot import FrozenDict, snapshot, thaw
from greenroom.runtime.scopes import Scope
from greenroom.runtime.tool import MalformedCall, Tool, accepted

__all__ = ["Tool", "ToolManager", "tool_function"]

logger = logging.getLogger("greenroom.tools")

MOST_NESTED: Final = 16
"""How many calls may stand within each other while there is a policy. A tool that calls itself without an end would
exhaust the interpreter's stack in the middle of a stage."""

RESERVED: Final = "workflow"
"""The name of the tool that runs workflows. Wrapped as a function of a workflow, it would let a run start itself."""

Settling: TypeAlias = Callable[[int, ToolResult, Outcome | None], None]


class _Registered(NamedTuple):
    """A tool, its schema as it is shown, and what calls owe where less is shown than the schema asks."""

    tool: Tool
    shown: Schema | None
    owed: Variants | None


@final
class ToolManager:
    """Tools by name, in the order of their adding. By itself it emits nothing, checks nobody's rights and sets no
    deadline but a tool's own: whoever needs another puts `execute` into a cancel scope, one for each call whose result
    is to survive the others'.

    Calls pass the policies of `pipeline`; where none is given, of the runtime in whose tree the caller is. Without
    either, and while no policy is registered, a call is just run. `scope` is where they happen, for policies that look
    only there.
    """

    def __init__(self, *, pipeline: Pipeline | None = None, scope: Scope | None = None) -> None:
        self._registered: dict[str, _Registered] = {}
        self._pipeline = pipeline
        self.scope = scope

    @property
    def count(self) -> int:
        """How many tools there are."""
        return len(self._registered)

    def add(self, tools: Tool | Iterable[Tool]) -> None:
        """Adds tools. A known name is replaced in its place; the last of a repeated name wins.

        A schema that a provider would refuse is shown flattened, and calls are then checked against what it says. One
        that cannot be shown at all raises `ToolError` (TOOL) with the tool's name, and no tool of the batch is added.
        """
        batch = [tools] if isinstance(tools, Tool) else tools
        self._registered.update([(tool.name, _register(tool)) for tool in batch])

    def tool(self, name: str) -> Tool | None:
        """The very tool that was added under the name, if any."""
        registered = self._registered.get(name)
        return registered.tool if registered is not None else None

    def tools(self) -> list[Tool]:
        """All tools in order."""
        return [registered.tool for registered in self._registered.values()]

    def definitions(self) -> list[ToolDefinition]:
        """What a model is shown: for each tool its name, its summary (or else its description) and its schema."""
        return [
            ToolDefinition(tool.name, tool.description if tool.summary is None else tool.summary, shown)
            for tool, shown, _ in self._registered.values()
        ]

    def rendered(self, call: ToolCall, value: Any) -> str:
        """What a model is shown of a value that the call returned: what the tool makes of it, or compact JSON.

        Raises `MalformedOutcome` for a value that the tool must not return.
        """
        registered = self._registered.get(call.name)
        handling = PLAIN if registered is None else registered.tool.handling
        return handling.rendered(call.arguments, value)

    def remove(self, names: str | Iterable[str]) -> bool:
        """Removes tools; whether one of them was there."""
        batch = [names] if isinstance(names, str) else names
        removed = [self._registered.pop(name, None) for name in batch]
        return any(registered is not None for registered in removed)

    def clear(self) -> None:
        """Removes every tool."""
        self._registered.clear()

    @overload
    async def execute(
        self, calls: ToolCall, *, stop: Cancel | None = None, settled: Settling | None = None
    ) -> ToolResult: ...
    @overload
    async def execute(
        self, calls: Sequence[ToolCall], *, stop: Cancel | None = None, settled: Settling | None = None
    ) -> list[ToolResult]: ...
    async def execute(
        self, calls: ToolCall | Sequence[ToolCall], *, stop: Cancel | None = None, settled: Settling | None = None
    ) -> ToolResult | list[ToolResult]:
        """Runs one call, or several at a time, and says how each ended. Calls start, and results stand, in their order.

        Nothing that a tool raises as an `Exception` leaves here: it becomes a failure with its text, and the other
        calls go on. Cancellation and `KeyboardInterrupt` pass, alone even where they came in a group; what else was in
        it is logged. A cancelled batch gives no results at all. A single call runs in the task of the caller and shares
        its context variables, calls of a batch have copies of them.

        `settled(position, result, outcome)` hears of each call that is over, so that a cancelled caller keeps what was
        done. `outcome` is what the pipeline has to say about it; None where it had no part in it. `stop` ends what runs
        as ABORTED, once it is set, and lets nothing else begin.

        While there is a policy, calls of a batch run beside each other only if their tools are `concurrent`
        (`Handling`), results come in order, and no call runs a tool that has taken the place of the one there was when
        it came (TOOL_CHANGED), nor within more than 16 others (DEPTH). Raises then what a recorder raises, and an
        `InvariantError`.
        """
        pipeline = self._policies(stop)
        if isinstance(calls, ToolCall):
            await trio.lowlevel.checkpoint()
            if pipeline is None:
                result, outcome = await self._settle(calls), None
            else:
                outcome = await self._execution(pipeline, calls, stop).run()
                result = _result(calls, outcome)
            if settled is not None:
                settled(0, result, outcome)
            return result
        results: dict[int, ToolResult] = {}

        def settle(index: int, result: ToolResult, outcome: Outcome | None = None) -> None:
            results[index] = result
            if settled is not None:
                settled(index, result, outcome)

        if pipeline is None:
            await self._run_all(calls, settle)
        else:
            executions = [self._execution(pipeline, call, stop) for call in calls]
            await run_batch(
                executions,
                lambda at, outcome: settle(at, _result(calls[at], outcome), outcome),
                lambda: pipeline.max_parallel,
            )
        return [results[index] for index in range(len(calls))]

    async def run(self, name: str, args: Any, caller: object = None) -> Any:
        """Runs one tool and gives back what it returns, or raises what it raises.

        Raises `ToolError`: TOOL if there is no such tool now, or if a schema that is shown flattened refuses the
        arguments; while there is a policy, the code of a `ToolFail` that nothing was raised for (DENIED, say).
        """
        pipeline = self._policies(None)
        if pipeline is None:
            return await self._run(name, args, caller)
        call = ToolCall(uuid4().hex, name, args, caller=caller)
        outcome = await self._execution(pipeline, call, None).run()
        if isinstance(outcome, ToolOk):
            return thaw(outcome.value)
        assert isinstance(outcome, ToolFail), "there is no third one"
        if outcome.cause is not None:
            raise outcome.cause
        raise ToolError(outcome.code, outcome.message, {"tool": name})

    def _policies(self, stop: Cancel | None) -> Pipeline | None:
        """The pipeline, if it has anything to do with a call now."""
        pipeline = self._pipeline
        if pipeline is None:
            node = current_node()
            if node is not None and node.place is not None:
                pipeline = node.place.tree.pipeline
        if stop is not None:
            return Pipeline(Bus()) if pipeline is None else pipeline
        return None if pipeline is None or pipeline.idle else pipeline

    def _execution(self, pipeline: Pipeline, call: ToolCall, stop: Cancel | None) -> Execution:
        arguments = snapshot(call.arguments)
        flaw = call.invalid if not isinstance(arguments, NotJson) else str(arguments)
        actor = current_actor()
        parent = current_invocation()
        invocation = Invocation(
            call_id=call.id,
            name=call.name,
            known=call.name in self._registered,
            arguments=FrozenDict() if isinstance(arguments, NotJson) else arguments,
            agent=None if actor is None else actor.ref.path,
            caller=call.caller,
            parent=parent,
            scope=self.scope,
            stop=stop if stop is not None or parent is None else parent.stop,
        )
        registered = self._registered.get(call.name)

        async def body(args: Any) -> Any:
            now = self._registered.get(call.name)
            if now is None:
                raise ToolError("UNKNOWN_TOOL", f"tool not found: {call.name}", {"tool": call.name})
            if registered is not None and now.tool is not registered.tool:
                raise ToolError(
                    "TOOL_CHANGED",
                    f"{call.name} was not run: another tool of this name has come since the call was made. Look at what"
                    " it does now, and make the call anew.",
                    {"tool": call.name},
                )
            if invocation.depth > MOST_NESTED:
                raise ToolError(
                    "DEPTH",
                    f"{call.name} would run {invocation.depth} calls deep, and {MOST_NESTED} are allowed: do the work"
                    " here instead of nesting it further.",
                    {"tool": call.name, "depth": invocation.depth, "max": MOST_NESTED},
                )
            try:
                return await self._run(call.name, args, call.caller)
            except MalformedCall as error:
                if error.tool != call.name:
                    raise  # of another tool, which this one has called
                raise ToolError("INVALID_ARGS", error.message, error.context) from error

        return Execution(
            pipeline,
            invocation,
            PLAIN if registered is None else registered.tool.handles(invocation.arguments),
            body,
            None if flaw is None else f"malformed arguments: {flaw}",
        )

    async def _run_all(self, calls: Sequence[ToolCall], settle: Callable[[int, ToolResult], None]) -> None:
        async def run(index: int, call: ToolCall) -> None:
            settle(index, await self._settle(call))

        async with trio.open_nursery() as nursery:
            for index, call in enumerate(calls):
                nursery.start_soon(run, index, call, name=f"tool {call.name}")
                await trio.lowlevel.checkpoint()  # tasks that become runnable together run in no particular order

    async def _run(self, name: str, args: Any, caller: object) -> Any:
        """The one place where a tool runs."""
        registered = self._registered.get(name)
        if registered is None:
            raise ToolError("TOOL", f"tool not found: {name}", {"tool": name})
        if registered.owed is not None:
            accepted(name, args, registered.owed.parse(args))
        try:
            return await registered.tool.execute(args, caller)
        except BaseExceptionGroup as group:
            failed, rest = group.split(Exception)
            if failed is None or rest is None:
                raise
            # It was cancelled, and a part of it failed at that: nobody is there any more to whom that is a result.
            logger.warning("The tool %s failed as it was cancelled", name, exc_info=failed)
            raise rest from None

    async def _settle(self, call: ToolCall) -> ToolResult:
        try:
            if call.invalid is not None:
                raise ToolError("TOOL", f"malformed arguments: {call.invalid}", {"tool": call.name})
            value = await self._run(call.name, call.arguments, call.caller)
        except Exception as error:
            return ToolFailure(id=call.id, name=call.name, error=error_text(error))
        return ToolSuccess(id=call.id, name=call.name, value=value)


class HasInput(Protocol):
    """What a workflow hands to a function of a task, as far as a tool needs it."""

    @property
    def input(self) -> Any: ...


def tool_function(tools: ToolManager, name: str) -> Callable[[HasInput], Awaitable[Any]]:
    """A tool as a function of a workflow task: it gets the task's input as its arguments.

    The tool is looked up at each call. Its exceptions come through as they are. Raises `ToolError` (TOOL): here for the
    name `workflow`, at the call if there is no such tool, and after it if what the tool returned is not JSON.
    """
    if name == RESERVED:
        raise ToolError(
            "TOOL", f"the tool {name!r} cannot be a function of a workflow: nest steps instead", {"tool": name}
        )

    async def run(controller: HasInput) -> Any:
        value = await tools.run(name, controller.input)
        flaw = parse_json_value(value)
        if isinstance(flaw, NotJson):
            raise ToolError("TOOL", f"the tool {name!r} has to return JSON, but {flaw}", {"tool": name})
        return value

    return run


def _result(call: ToolCall, outcome: Outcome) -> ToolResult:
    if isinstance(outcome, ToolOk):
        return ToolSuccess(id=call.id, name=call.name, value=thaw(outcome.value))
    assert isinstance(outcome, ToolFail), "there is no third one"
    return ToolFailure(id=call.id, name=call.name, error=outcome.message)


def _register(tool: Tool) -> _Registered:
    if tool.parameters is None or tool.arguments is not None:
        return _Registered(tool, tool.parameters, None)
    try:
        shown, owed = advertise(tool.parameters)
    except (TypeError, LookupError) as error:
        raise ToolError(
            "TOOL",
            f"the tool {tool.name!r} cannot be shown to a model: {error.args[0]}. Give it the schema of an object",
            {"tool": tool.name},
        ) from None
    return _Registered(tool, shown, owed)
