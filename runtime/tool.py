"""A tool: a described function, and how calls of it are read."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from math import inf
from types import UnionType
from typing import Any, Final, TypeAlias, TypeVar, cast, final

import trio
from msgspec import Struct, structs

from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas import Arguments, NotJson, Refusal, Schema, clone_json
from greenroom.runtime.background import JOB, Background, Work, offering, wanted
from greenroom.runtime.patience import patient_scope
from greenroom.runtime.pipeline.handling import PLAIN, Handling
from greenroom.runtime.pipeline.outcomes import compact

__all__ = ["MalformedCall", "Tool", "accepted", "in_time"]

R = TypeVar("R")

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
    is cancelled, what it asked is withdrawn, and it fails with `ToolError` (TOOL_TIMEOUT) whatever it returns or raises
    then.
    With `patience` the clock stands still while the call waits for a person's answer; see `patient_scope`.

    With a `background` (`runtime.jobs`) a call may say `run_in_background`, which models are shown as one argument
    more. Its other arguments are read as ever; then it returns `{"jobId": ...}` at once, and goes on as a job of the
    agent that called. What it returns is the job's output; while it runs, `current_job()` is the job.

    `handling` says how its calls are treated while there is a policy: which may overlap, how the value is shown.

    Raises `TypeError` for a type that cannot be shown (a recursive one), and for a function that a call cannot satisfy;
    `ValueError` for a timeout that is not a positive number, for patience without one, and for a background where there
    is an argument `run_in_background` already.
    """

    __slots__ = (
        "_execute",
        "_needs_caller",
        "_takes",
        "_thread",
        "arguments",
        "background",
        "description",
        "handling",
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
    background: Final[Background | None]
    """Where calls go on that nobody waits for. None: each is waited for."""
    timeout: Final[float | None]
    patience: Final[bool]
    handling: Final[Handling]
    """What it says about its calls while there is a policy."""

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
        background: Background | None = None,
        handling: Handling = PLAIN,
    ) -> None:
        self.name = name
        self.description = description
        self.summary = summary
        typed = parameters is not None and not isinstance(parameters, dict)
        self.arguments = Arguments[Any](parameters) if typed else None
        shown = self.arguments.advertised if self.arguments is not None else cast("Schema | None", parameters)
        self.background = background
        try:
            self.parameters = shown if background is None else offering(shown)
        except ValueError as error:
            raise ValueError(f"tool {name!r}: {error}") from None
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
        self.handling = handling

    async def execute(self, args: Any, caller: object = None) -> Any:
        """What the function returns for these arguments, or what it raises, as it is.

        `caller` is an opaque note for the function, which gets it only if it has room for it. Cancellation reaches an
        async function as usual. Raises `ToolError` TOOL for arguments that are refused, TOOL_TIMEOUT; of a call that is
        to go on in the background, what starting a job raises.
        """
        if self.background is not None:
            by_itself, args = wanted(args)
            if accepted(self.name, args, by_itself):
                return await self._begin(self.background, args, caller)
        if JOB.get() is None:
            return await self._execute_in_time(args, caller)
        token = JOB.set(None)  # a call of another tool within a job is no job
        try:
            return await self._execute_in_time(args, caller)
        finally:
            JOB.reset(token)

    def handles(self, args: Any) -> Handling:
        """How a call with these arguments is handled while there is a policy: what `handling` has to say of values is
        not said of `{"jobId": ...}`."""
        if self.background is None or wanted(args)[0] is not True:
            return self.handling
        return structs.replace(self.handling, returns=None, render=None)

    async def _begin(self, background: Background, args: Any, caller: object) -> dict[str, str]:
        if self.arguments is not None:
            accepted(self.name, args, self.arguments.parse(args))  # who calls is told, not who reads the job

        async def run(job: Work) -> str:
            JOB.set(job)
            value = await self._execute_in_time(args, caller)
            if self.handling.render is not None:
                return self.handling.rendered(args, value)
            return value if isinstance(value, str) else compact(value)

        label = cast("dict[str, Any]", args).get("description") if isinstance(args, dict) else None
        return {"jobId": await background.begin(self.name, label if isinstance(label, str) else self.name, run)}

    async def _execute_in_time(self, args: Any, caller: object) -> Any:
        if self.timeout is None:
            return await self._execute_now(args, caller)
        return await in_time(self.name, self.timeout, lambda: self._execute_now(args, caller), patience=self.patience)

    async def _execute_now(self, args: Any, caller: object) -> Any:
        value = args if self.arguments is None else accepted(self.name, args, self.arguments.parse(args))
        values = (value, caller) if caller is not None or self._needs_caller else (value,)
        if self._thread is False:
            returned = self._execute(*values[: self._takes])
        else:
            limiter = None if self._thread is True else self._thread
            returned = await trio.to_thread.run_sync(self._execute, *values[: self._takes], limiter=limiter)
        return await returned if inspect.isawaitable(returned) else returned

    def __repr__(self) -> str:
        return f"<Tool {self.name!r}>"


async def in_time(name: str, seconds: float, work: Callable[[], Awaitable[R]], *, patience: bool) -> R:
    """What the work for a call of the tool `name` comes to, within so many seconds; see `Tool` for `patience`.

    Raises `ToolError` TOOL_TIMEOUT if it took longer, whatever it came to then: of what is cancelled a part may fail by
    itself. Cancellation from elsewhere passes.
    """
    scope: trio.CancelScope | None = None
    cause: Exception | None = None
    try:
        with patient_scope(seconds) if patience else trio.move_on_after(seconds) as scope:
            value = await work()
            if not scope.cancel_called:
                return value
    except Exception as error:
        if scope is None or not scope.cancel_called:
            raise
        cause = error
    raise ToolError(
        "TOOL_TIMEOUT",
        f"{name} was cancelled, since it took longer than {seconds:g} s: what it had done by then may stand; ask it for"
        " less at a time.",
        {"tool": name, "seconds": seconds},
    ) from cause


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


def accepted(name: str, args: object, reading: Any | Refusal) -> Any:
    """What the arguments were read as; raises `ToolError` TOOL if they were refused."""
    if not isinstance(reading, Refusal):
        return reading
    shown = clone_json(args)
    context = {"args": str(shown) if isinstance(shown, NotJson) else shown}
    error = MalformedCall("TOOL", f"malformed {name} call: {reading}", context)
    error.tool = name
    raise error


class MalformedCall(ToolError):
    """Arguments that a tool refuses (code TOOL)."""

    tool: str = ""
    """Whose they are."""
