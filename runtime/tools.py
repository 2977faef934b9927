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

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from math import inf
from types import UnionType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, cast, final, overload

import trio
from msgspec import Struct

from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas import (
    Arguments,
    NotJson,
    Refusal,
    Schema,
    Variants,
    advertise,
    clone_json,
    parse_json_value,
)
from greenroom.protocol.tools import ToolCall, ToolDefinition, ToolFailure, ToolResult, ToolSuccess
from greenroom.runtime.patience import patient_scope

__all__ = ["Tool", "ToolManager", "tool_function"]

RESERVED: Final = "workflow"
"""The name of the tool that runs workflows. Wrapped as a function of a workflow, it would let a run start itself."""

Handler: TypeAlias = Callable[[], Any] | Callable[[Any], Any] | Callable[[Any, Any], Any]
Parameters: TypeAlias = Schema | type[Struct] | UnionType


@final
class Tool:
    """A described function. `name`, `description`, `summary`, `parameters` and `arguments` are read-only; what was not
    given is `None`.

    `execute` may be plain or async, and take nothing, the arguments, or the arguments and the caller. What it takes as
    arguments follows from `parameters`:

    - a struct type, or a union of structs tagged by `operation`: the struct that the call spells. Both the schema that
      is shown and the reading of calls come from the type. A call that spells no such struct is refused with
      `ToolError` (TOOL), whose message names the fields.
    - a JSON Schema, or nothing: the dict of the call as it came, unchecked. The schema is kept as it is.

    With `thread`, a plain function that blocks runs in a worker thread, under trio's own limit or under the
    `CapacityLimiter` given; a cancelled call then waits for the function to end.

    `timeout` limits each call, in seconds (`None`: nothing does); it is not shown to models. A call that takes longer
    is cancelled, what it asked is withdrawn, and it fails with `ToolError` (TOOL_TIMEOUT) whatever it returns then.
    With `patience` the clock stands still while the call waits for a person's answer; see `patient_scope`.

    Raises `TypeError` for a type that cannot be shown (a recursive one), and for a function that a call cannot satisfy;
    `ValueError` for a timeout that is not a positive number, and for patience without one.
    """

    __slots__ = (
        "_execute",
        "_needs_caller",
        "_takes",
        "_thread",
        "arguments",
        "description",
        "name",
        "parameters",
        "patience",
        "summary",
        "timeout",
    )

    name: Final[str]
    description: Final[str | None]
    summary: Final[str | None]
    parameters: Final[Schema | None]
    """The schema that is shown to models."""
    arguments: Final[Arguments[Any] | None]
    """What reads calls, if `parameters` was a type; it holds the exact schema too."""
    timeout: Final[float | None]
    patience: Final[bool]

    def __init__(
        self,
        name: str,
        execute: Handler,
        *,
        description: str | None = None,
        summary: str | None = None,
        parameters: Parameters | None = None,
        thread: bool | trio.CapacityLimiter = False,
        timeout: float | None = None,
        patience: bool = False,
    ) -> None:
        self.name = name
        self.description = description
        self.summary = summary
        typed = parameters is not None and not isinstance(parameters, dict)
        self.arguments = Arguments[Any](parameters) if typed else None
        self.parameters = self.arguments.advertised if self.arguments is not None else cast("Schema | None", parameters)
        self._execute: Callable[..., Any] = execute
        self._takes, self._needs_caller = _capacity(name, execute)
        self._thread = thread
        if thread is not False and inspect.iscoroutinefunction(execute):
            raise TypeError(f"tool {name!r}: only a plain function runs in a thread, and this one is async")
        if timeout is not None and not 0 < timeout < inf:
            raise ValueError(f"tool {name!r}: its timeout is a positive number of seconds or None, not {timeout}")
        if patience and timeout is None:
            raise ValueError(f"tool {name!r}: without a timeout there is nothing to be patient with")
        self.timeout = timeout
        self.patience = patience

    async def execute(self, args: Any, caller: object = None) -> Any:
        """What the function returns for these arguments, or what it raises, as it is.

        `caller` is an opaque note for the function, which gets it only if it has room for it. Cancellation reaches an
        async function as usual. Raises `ToolError` TOOL for arguments that are refused, TOOL_TIMEOUT.
        """
        if self.timeout is None:
            return await self._execute_now(args, caller)
        with patient_scope(self.timeout) if self.patience else trio.move_on_after(self.timeout) as scope:
            value = await self._execute_now(args, caller)
            if not scope.cancel_called:
                return value
        raise ToolError(
            "TOOL_TIMEOUT",
            f"{self.name} was cancelled, since it took longer than {self.timeout:g} s: what it had done by then may"
            " stand; ask it for less at a time.",
            {"tool": self.name, "seconds": self.timeout},
        )

    async def _execute_now(self, args: Any, caller: object) -> Any:
        value = args if self.arguments is None else _accepted(self.name, args, self.arguments.parse(args))
        values = (value, caller) if caller is not None or self._needs_caller else (value,)
        if self._thread is False:
            returned = self._execute(*values[: self._takes])
        else:
            limiter = None if self._thread is True else self._thread
            returned = await trio.to_thread.run_sync(self._execute, *values[: self._takes], limiter=limiter)
        return await returned if inspect.isawaitable(returned) else returned

    def __repr__(self) -> str:
        return f"<Tool {self.name!r}>"


class _Registered(NamedTuple):
    """A tool, its schema as it is shown, and what calls owe where less is shown than the schema asks."""

    tool: Tool
    shown: Schema | None
    owed: Variants | None


@final
class ToolManager:
    """Tools by name, in the order of their adding. It emits nothing, checks nobody's rights and sets no deadline but a
    tool's own: whoever needs another puts `execute` into a cancel scope, one for each call whose result is to survive
    the others'.
    """

    def __init__(self) -> None:
        self._registered: dict[str, _Registered] = {}

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

    def remove(self, names: str | Iterable[str]) -> bool:
        """Removes tools; whether one of them was there."""
        batch = [names] if isinstance(names, str) else names
        removed = [self._registered.pop(name, None) for name in batch]
        return any(registered is not None for registered in removed)

    def clear(self) -> None:
        """Removes every tool."""
        self._registered.clear()

    @overload
    async def execute(self, calls: ToolCall) -> ToolResult: ...
    @overload
    async def execute(self, calls: Sequence[ToolCall]) -> list[ToolResult]: ...
    async def execute(self, calls: ToolCall | Sequence[ToolCall]) -> ToolResult | list[ToolResult]:
        """Runs one call, or several at a time, and says how each ended. Calls start, and results stand, in their order.

        Nothing that a tool raises as an `Exception` leaves here: it becomes a failure with its text, and the other
        calls go on. Cancellation, `KeyboardInterrupt` and groups that hold one pass; a cancelled batch gives no results
        at all. A single call runs in the task of the caller and shares its context variables, calls of a batch have
        copies of them.
        """
        if isinstance(calls, ToolCall):
            await trio.lowlevel.checkpoint()
            return await self._settle(calls)
        results: dict[int, ToolResult] = {}

        async def settle(index: int, call: ToolCall) -> None:
            results[index] = await self._settle(call)

        async with trio.open_nursery() as nursery:
            for index, call in enumerate(calls):
                nursery.start_soon(settle, index, call)
                await trio.lowlevel.checkpoint()  # tasks that become runnable together run in no particular order
        return [results[index] for index in range(len(calls))]

    async def run(self, name: str, args: Any, caller: object = None) -> Any:
        """Runs one tool and gives back what it returns, or raises what it raises: the one place where a tool runs.

        Raises `ToolError` (TOOL) if there is no such tool now, or if a schema that is shown flattened refuses the
        arguments.
        """
        registered = self._registered.get(name)
        if registered is None:
            raise ToolError("TOOL", f"tool not found: {name}", {"tool": name})
        if registered.owed is not None:
            _accepted(name, args, registered.owed.parse(args))
        return await registered.tool.execute(args, caller)

    async def _settle(self, call: ToolCall) -> ToolResult:
        try:
            if call.invalid is not None:
                raise ToolError("TOOL", f"malformed arguments: {call.invalid}", {"tool": call.name})
            value = await self.run(call.name, call.arguments, call.caller)
        except Exception as error:
            return ToolFailure(id=call.id, name=call.name, error=_text(error))
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


def _capacity(name: str, execute: Callable[..., Any]) -> tuple[int, bool]:
    """How many of (arguments, caller) the function has room for, and whether it cannot do without the second."""
    try:
        parameters = inspect.signature(execute).parameters.values()
    except ValueError:  # a builtin that does not tell
        return 1, False
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = sum(each.default is each.empty for each in positional)
    stray = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if needed > 2 or stray:
        raise TypeError(f"tool {name!r}: its function has to do with at most two values, the arguments and the caller")
    room = 2 if any(each.kind is each.VAR_POSITIONAL for each in parameters) else min(len(positional), 2)
    return room, needed == 2


def _accepted(name: str, args: object, reading: Any | Refusal) -> Any:
    """What the arguments were read as; raises `ToolError` TOOL if they were refused."""
    if not isinstance(reading, Refusal):
        return reading
    shown = clone_json(args)
    context = {"args": str(shown) if isinstance(shown, NotJson) else shown}
    raise ToolError("TOOL", f"malformed {name} call: {reading}", context)


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


def _text(error: BaseException) -> str:
    """The message of an error, of the one leaf if it is a group with one."""
    whole: object = error
    if isinstance(whole, BaseExceptionGroup):
        leaves = cast("BaseExceptionGroup[BaseException]", whole).exceptions
        if len(leaves) == 1:
            return _text(leaves[0])
    try:
        return str(error)
    except Exception:
        return "Unknown thrown value"
