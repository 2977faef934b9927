"""The loop of a run: prompt, answer, tools, results, and again, until the model asks for nothing more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, final

import msgspec
import trio

from greenroom.actors.agent.run import AgentRun
from greenroom.actors.agent.settings import Settings
from greenroom.protocol.agents import (
    UNITS_A_TOKEN,
    AgentResult,
    Budget,
    ChatMessage,
    Delta,
    InboxMessage,
    MessageInput,
    ProviderOptions,
    ProviderResult,
    ThinkChunk,
    TokenChunk,
    ToolChunk,
    Usage,
    UsageChunk,
)
from greenroom.protocol.schemas import NotJson, parse_json_value
from greenroom.protocol.text import utf16_length
from greenroom.protocol.tools import ToolCall, ToolFailure, ToolResult
from greenroom.runtime.pipeline.outcomes import MalformedOutcome, Outcome, ToolOk
from greenroom.runtime.provider import ProviderStream

if TYPE_CHECKING:
    from greenroom.actors.agent.agent import Agent

__all__ = ["Turns"]


@final
class Turns:
    """What one run does, within the run's cancel scope: whatever stops it cancels that scope.

    What must be recorded when it is cancelled is recorded without a checkpoint, so that it holds also where the whole
    agent is being stopped.
    """

    def __init__(self, agent: Agent, run: AgentRun) -> None:
        self._agent = agent
        self._run = run
        self._settings = run.settings
        self._context = agent.context
        self._conversation = agent.conversation
        self._log = run.log
        self._inbox = agent.inbox
        self._options = _options(run.settings)
        self._prompt: list[ChatMessage] = []
        self._compacting = agent.window is not None and self._conversation.summarizable
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._usage: Usage | None = None
        self._offered: frozenset[str] = frozenset()
        self.opened = False
        """It has read what it was woken for."""

    def open(self) -> None:
        """Begin with what waits in the inbox, for a run that was woken for it."""
        self._read(self._inbox.claim_turn())
        self.opened = True

    async def take(self) -> AgentResult | None:
        """All turns; what they came to, or `None` if the run was stopped first."""
        if self._settings.limit <= 0:
            return AgentResult(content="", partial=False)
        if not self._run.stopped:
            await self._build()
            await self._trim(between_turns=False)
        for number in range(self._settings.limit):
            self._agent.emitter.emit("turn", number)
            if number:
                await self._yield()
            if self._run.stopped:
                return None
            if not self._agent.ref.alive:
                await trio.sleep_forever()  # it is being stopped: cancelled as soon as what is beneath it has ended
            if self._read(self._inbox.claim_step()):
                await self._trim(between_turns=number > 0)
            answer, over = await self._step()
            if answer is None:
                return None
            more = number + 1 < self._settings.limit
            if over and not (more and self._inbox.for_next_step):
                return self._whole(answer.content)
            if answer.tools:
                await self._trim(between_turns=True)
        if self._run.stopped:
            return None
        return self.partial()

    async def _step(self) -> tuple[ProviderResult | None, bool]:
        """One answer and all its calls, or `None` if the run was stopped at it; whether nothing more is to be asked."""
        await self._log.saved()
        with self._log.step():
            answer = await self._ask()
            if answer is None:
                return None, True
            self._add(MessageInput("assistant", answer.content, answer.tools))
            return answer, not answer.tools or await self._call(answer.tools)

    def partial(self) -> AgentResult:
        """What there is of a run that ended before it was done."""
        return AgentResult(content="".join(self._text), thinking=self._thoughts(), usage=self._usage, partial=True)

    def _whole(self, content: str) -> AgentResult:
        return AgentResult(content=content, thinking=self._thoughts(), usage=self._usage, partial=False)

    def _thoughts(self) -> str | None:
        return "\n\n".join(self._thinking) or None

    # ---------------------------------------------------------------- the prompt

    async def _build(self) -> None:
        self._prompt = await self._context.build(self._agent.provider.format, conversation=self._conversation)

    def _read(self, messages: tuple[InboxMessage, ...]) -> bool:
        """Put into the conversation what was claimed; whether there was any."""
        for message in messages:
            self._tell(message.text, message.source)
        return bool(messages)

    def _tell(self, text: str, source: str | None) -> None:
        self._prompt.append(self._log.told(text, source) or self._conversation.add(MessageInput("user", text)))

    def _add(self, message: MessageInput) -> None:
        self._prompt.append(self._conversation.add(message))

    async def _trim(self, *, between_turns: bool) -> None:
        """Fold the conversation if the next prompt would be too large."""
        window = self._agent.window
        if not self._compacting or window is None or window.holds(self._prompt):
            return
        try:
            section = await self._conversation.compact()
        except Exception as error:
            self._agent.emitter.emit("compactError", error)
            if self._agent.strict:
                raise
            return
        if section is not None:
            await self._build()
        elif between_turns:
            self._compacting = False

    async def _yield(self) -> None:
        if self._settings.scheduler is None:
            return
        try:
            await self._settings.scheduler.yield_()
        except Exception:
            if not self._run.stopped:
                raise

    # ---------------------------------------------------------------- the model

    async def _ask(self) -> ProviderResult | None:
        """One answer of the model, or `None` if it was stopped at it."""
        offered = self._context.definitions()
        self._offered = frozenset(tool.name for tool in offered)
        turn = _Turn(self._run, self._settings.budget)
        stream: ProviderStream | None = None
        answer: ProviderResult | None = None
        try:
            async with self._agent.provider.stream(
                self._prompt, self._run.cancel, offered or None, self._options
            ) as stream:
                async for delta in stream:
                    turn.take(delta)
                answer = stream.result
        except Exception:
            if not self._run.stopped:  # what stops a provider may look like a failure of its own
                raise
        finally:
            self._text.append(turn.text)
            if answer is None:
                self._log.cut_off(turn.text)
            said = answer if answer is not None or stream is None else _so_far(stream)
            if said is not None:
                self._note(said, turn, whole=answer is not None)
        return answer

    def _note(self, said: ProviderResult, turn: _Turn, *, whole: bool) -> None:
        """Keep what a turn used and thought."""
        if said.thinking:
            self._thinking.append(said.thinking)
        if said.usage is None:
            return
        usage = said.usage.sanitised()
        turn.charge_rest(usage)
        self._usage = usage if self._usage is None else self._usage + usage
        if whole:
            self._agent.emitter.emit("usage", usage)
            self._run.put(UsageChunk(usage))

    # ---------------------------------------------------------------- the tools

    async def _call(self, calls: tuple[ToolCall, ...]) -> bool:
        """Run what may run, and record what became of each, in order, even when cancelled.

        Whether a tool has said that nothing more is to be asked.
        """
        results: list[ToolResult | None] = [self._refusal(call) for call in calls]
        outcomes: list[Outcome | None] = [None] * len(calls)
        waiting = [index for index, result in enumerate(results) if result is None]

        def settled(position: int, result: ToolResult, outcome: Outcome | None) -> None:
            results[waiting[position]] = _spelled(result)
            outcomes[waiting[position]] = outcome

        self._log.batch(waiting)
        for position, result in enumerate(results):
            if isinstance(result, ToolFailure):
                self._log.refused(position, result.error)
        try:
            await self._context.tools.execute([calls[index] for index in waiting], settled=settled)
        finally:
            for position, call in enumerate(calls):
                self._record(position, call, results[position] or _failure(call, "cancelled"), outcomes[position])
            contexts = [text for outcome in outcomes if outcome is not None for text in outcome.contexts]
            for text in contexts:
                self._tell(text, "context")
        return not contexts and any(isinstance(each, ToolOk) and each.concludes_turn for each in outcomes)

    def _refusal(self, call: ToolCall) -> ToolFailure | None:
        """Why the call may not run, if it may not."""
        if call.invalid is not None:
            return None  # the registry answers it, and runs nothing
        if (authority := self._settings.authority) is not None:
            try:
                verdict = authority.evaluate(call)
                allowed, reason = verdict.allowed, verdict.reason
            except Exception as error:
                allowed, reason = False, str(error)
            if not allowed:
                self._agent.emitter.emit("deny", call, reason)
                return _failure(call, "denied by authority" if reason is None else f"denied: {reason}")
        return None if call.name in self._offered else _failure(call, f"tool not found: {call.name}")

    def _record(self, position: int, call: ToolCall, result: ToolResult, outcome: Outcome | None) -> None:
        if outcome is not None and outcome.content is not None:
            content = outcome.content
        elif isinstance(result, ToolFailure):
            content = result.error
        else:
            try:
                content = self._context.tools.rendered(call, result.value)
            except MalformedOutcome as error:
                result = _failure(call, content := error.message)
        self._agent.emitter.emit("tool", call, result)
        self._run.put(ToolChunk(call, result))
        self._prompt.append(
            self._log.result(position, outcome) or self._conversation.add(MessageInput("tool", content))
        )


@final
class _Turn:
    """What one answer has brought so far, and what was charged for it."""

    __slots__ = ("_budget", "_charged", "_pieces", "_run", "_units")

    def __init__(self, run: AgentRun, budget: Budget | None) -> None:
        self._run = run
        self._budget = budget
        self._pieces: list[str] = []
        self._units = 0
        self._charged = 0

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def take(self, delta: Delta) -> None:
        if delta.type == "thinking":
            self._run.put(ThinkChunk(delta.text))
            return
        self._pieces.append(delta.text)
        if self._budget is not None:
            self._units += utf16_length(delta.text)
            grown = math.ceil(self._units / UNITS_A_TOKEN) - self._charged
            self._charged += grown
            self._budget.consume(Usage(0, grown, grown))
        self._run.put(TokenChunk(delta.text))

    def charge_rest(self, usage: Usage) -> None:
        """Charge what was used beyond what the text was taken to be."""
        if self._budget is not None:
            completion, total = usage.completion - self._charged, usage.total - self._charged
            self._budget.consume(Usage(usage.prompt, max(0, completion), max(0, total)))


def _so_far(stream: ProviderStream) -> ProviderResult | None:
    """What there is of an answer. Of one that was cut off anywhere, a provider may fail to make sense."""
    try:
        return stream.partial
    except Exception:
        return None


def _options(settings: Settings) -> ProviderOptions | None:
    if settings.think is None and settings.schema is None:
        return None
    return ProviderOptions(
        think=msgspec.UNSET if settings.think is None else settings.think,
        schema=msgspec.UNSET if settings.schema is None else settings.schema,
    )


def _spelled(result: ToolResult) -> ToolResult:
    """The result, or a failure in place of a value that a model cannot be given."""
    if isinstance(result, ToolFailure):
        return result
    flaw = parse_json_value(result.value)
    if not isinstance(flaw, NotJson):
        return result
    return ToolFailure(id=result.id, name=result.name, error=f"the tool returned what is no JSON: {flaw}")


def _failure(call: ToolCall, error: str) -> ToolFailure:
    return ToolFailure(id=call.id, name=call.name, error=error)
