"""Any set of policies in any order, calls that succeed, fail or hang, stops and cancellations, against plain Python.

A model of its own says how often the tool of a call runs and whether the call succeeds, where nothing is stopped. And
whatever happens: a denied call's tool never runs, a granted one's runs at most once, each call has one result and one
record, and what observers do changes neither.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import trio
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from greenroom.protocol.tools import ToolCall, ToolFailure, ToolResult, ToolSuccess
from greenroom.runtime.bus import Bus, Next
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import Outcome, ToolFail, ToolOk
from greenroom.runtime.pipeline.pipeline import Pipeline
from greenroom.runtime.pipeline.snapshot import thaw
from greenroom.runtime.pipeline.verdicts import Accept, Allow, Ask, Block, Deny, Review, Verdict
from greenroom.runtime.policies import CheckedRecorder
from greenroom.runtime.tools import Tool, ToolManager
from tests.pipeline.track import Log
from tests.stress.driver import Driver, Spawned
from tests.stress.outcome import machine

__all__ = ["SUITE", "Calls", "run"]

SUITE = 300

Stage = Literal["pre", "approval", "guard", "around", "post", "result"]
KINDS: dict[Stage, list[str]] = {
    "pre": ["pass", "allow", "deny", "ask", "raise", "garbage"],
    "approval": ["pass", "grant", "reject", "raise", "garbage", "wait"],
    "guard": ["pass", "deny", "raise"],
    "around": ["pass", "twice", "replace", "raise"],
    "post": ["pass", "block", "content", "value", "raise"],
    "result": ["pass", "tamper", "raise"],
}
POLICIES = [(stage, kind) for stage, kinds in KINDS.items() for kind in kinds]
TOOLS = ["succeeds", "fails", "hangs"]


class Policy(NamedTuple):
    stage: Stage
    kind: str
    close: Callable[[], None]


class Made:
    """A batch of calls that was made, and what has become of it."""

    def __init__(self, calls: list[ToolCall]) -> None:
        self.calls = calls
        self.stop = Cancel()
        self.disturbed = False
        """Policies have changed since, or it was stopped or cancelled: the model says nothing about it."""
        self.results: list[ToolResult] | None = None
        self.spawned: Spawned[None] | None = None


class Calls(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        logging.getLogger("greenroom.bus").disabled = True  # listeners raise on purpose
        self.driver = Driver()
        self.pipeline = Pipeline(bus := Bus())
        self.bus = bus
        self.tools = ToolManager(pipeline=self.pipeline)
        self.log = Log()
        self.pipeline.recorder = self.checked = CheckedRecorder(self.log)
        self.policies: list[Policy] = []
        self.made: list[Made] = []
        self.runs: dict[str, int] = {}
        self.told: list[Settled] = []
        self.bus.on(self.pipeline.result, self.told.append)
        self.gate = trio.Event()
        self.number = 0
        for name in TOOLS:
            self.tools.add(Tool(name, self.body(name), handling=Handling(concurrent=lambda args: args["beside"])))

    def teardown(self) -> None:
        self.driver.close()
        logging.getLogger("greenroom.bus").disabled = False

    def body(self, kind: str) -> Callable[[dict[str, Any]], Any]:
        async def body(arguments: dict[str, Any]) -> Any:
            id = arguments.pop("id")  # its own copy, also at a second run
            self.runs[id] = self.runs.get(id, 0) + 1
            if kind == "hangs":
                await self.gate.wait()
            if kind == "fails":
                raise LookupError("no such thing")
            return {"id": id}

        return body

    # ---------------------------------------------------------------- policies

    @initialize(approved=st.booleans(), twice=st.booleans())
    def begin(self, approved: bool, twice: bool) -> None:
        if approved:  # rare by chance, and where one grant could become two runs
            self.add("pre", "ask", False)
            self.add("approval", "grant", False)
            if twice:
                self.add("around", "twice", False)

    @rule(policies=st.lists(st.tuples(st.sampled_from(POLICIES), st.booleans()), min_size=1, max_size=4))
    def register(self, policies: list[tuple[tuple[Stage, str], bool]]) -> None:
        for (stage, kind), prepend in policies:
            self.add(stage, kind, prepend)

    def add(self, stage: Stage, kind: str, prepend: bool) -> None:
        if stage == "guard":
            close = self.pipeline.guard(lambda call: self.guard(kind))
        elif stage == "result":
            close = self.bus.on(self.pipeline.result, lambda settled: self.observe(kind, settled), prepend=prepend)
        else:
            event: Any = {
                "pre": self.pipeline.pre_execute,
                "approval": self.pipeline.approvals.event,
                "around": self.pipeline.execute,
                "post": self.pipeline.post_execute,
            }[stage]

            async def listener(payload: Any, next: Next[Any]) -> Any:
                return await getattr(self, stage)(kind, payload, next)

            close = self.bus.on(event, listener, prepend=prepend)
        policy = Policy(stage, kind, close)
        if prepend and stage != "guard":
            self.policies.insert(0, policy)
        else:
            self.policies.append(policy)
        self.disturb()

    @precondition(lambda self: self.policies)
    @rule(choices=st.lists(st.integers(0, 99), min_size=1, max_size=4))
    def close(self, choices: list[int]) -> None:
        for choice in choices[: len(self.policies)]:
            self.policies.pop(choice % len(self.policies)).close()
        self.disturb()

    @rule(mode=st.sampled_from(["ask", "ask", "never"]), most=st.integers(1, 4))
    def settle_on(self, mode: Literal["ask", "never"], most: int) -> None:
        """Whether anybody is asked at all, and how many calls of a batch may overlap."""
        self.pipeline.approvals.mode = mode
        self.pipeline.max_parallel = most
        self.disturb()

    def disturb(self) -> None:
        for made in self.made:
            made.disturbed = True

    async def pre(self, kind: str, call: Invocation, next: Next[Verdict]) -> Any:
        if kind == "raise":
            raise ValueError("no verdict today")
        verdicts = {"allow": Allow(), "deny": Deny("no"), "ask": Ask(), "garbage": "yes"}
        return await next() if kind == "pass" else verdicts[kind]

    async def approval(self, kind: str, request: ApprovalRequest, next: Next[Decision]) -> Any:
        if kind == "raise":
            raise ValueError("no decision today")
        if kind == "wait":
            await self.gate.wait()
        decisions = {"reject": Decision("rejected"), "garbage": True}
        return await next() if kind == "pass" else decisions.get(kind, Decision("allowed-once"))

    def guard(self, kind: str) -> str | None:
        if kind == "raise":
            raise ValueError("no guard today")
        return "no" if kind == "deny" else None

    async def around(self, kind: str, call: Invocation, next: Next[Outcome]) -> Outcome:
        if kind == "raise":
            raise ValueError("not around today")
        if kind == "replace":
            return ToolOk({"id": "replaced"})
        if kind == "twice":
            await next()
        return await next()

    async def post(self, kind: str, settled: Settled, next: Next[Review]) -> Review:
        if kind == "raise":
            raise ValueError("no review today")
        reviews = {"block": Block("no"), "content": Accept(content="less"), "value": Accept(value={"id": "put"})}
        return await next() if kind == "pass" else reviews[kind]

    def observe(self, kind: str, settled: Settled) -> None:
        if kind == "tamper":
            call: Any = settled.call
            outcome: Any = settled.outcome
            for tamper in (
                lambda: call.arguments.update(id="tampered with"),
                lambda: setattr(outcome, "value", "tampered with"),
                lambda: outcome.value.update(id="tampered with"),
                lambda: outcome.value.clear(),
            ):
                with suppress(TypeError, AttributeError):
                    tamper()
        if kind == "raise":
            raise ValueError("not looking today")

    # ---------------------------------------------------------------- calls

    @rule(tools=st.lists(st.tuples(st.sampled_from(TOOLS), st.booleans()), min_size=1, max_size=4))
    def call(self, tools: list[tuple[str, bool]]) -> None:
        calls: list[ToolCall] = []
        for name, beside in tools:
            self.number += 1
            calls.append(ToolCall(str(self.number), name, {"id": str(self.number), "beside": beside}))
        made = Made(calls)
        self.made.append(made)

        async def execute() -> None:
            if len(calls) == 1:
                made.results = [await self.tools.execute(calls[0], stop=made.stop)]
            else:
                made.results = await self.tools.execute(calls, stop=made.stop)

        made.spawned = self.driver.spawn(execute)

    @precondition(lambda self: self.waiting())
    @rule(choice=st.integers(0, 99), how=st.sampled_from(["stop", "cancel"]))
    def interrupt(self, choice: int, how: str) -> None:
        waiting = self.waiting()
        made = waiting[choice % len(waiting)]
        made.disturbed = True
        assert made.spawned is not None
        if how == "cancel":
            self.driver.cancel(made.spawned)
            assert made.spawned.cancelled
        else:

            async def stop() -> None:
                made.stop.set()

            self.driver.call(stop)
            assert made.results is not None, "what was stopped ends by itself"

    @precondition(lambda self: self.waiting())
    @rule()
    def open_gate(self) -> None:
        async def open_gate() -> None:
            self.gate.set()
            self.gate = trio.Event()

        while self.waiting():
            self.driver.call(open_gate)

    def waiting(self) -> list[Made]:
        return [made for made in self.made if made.spawned is not None and not made.spawned.done]

    # ---------------------------------------------------------------- what must hold

    @invariant()
    def each_call_that_is_over_has_one_result_and_one_record_and_is_what_the_model_says(self) -> None:
        told: dict[str, list[Settled]] = {}
        for settled in self.told:
            told.setdefault(settled.call.call_id, []).append(settled)
        events = self.log.events
        for made in self.made:
            assert made.spawned is not None
            for position, call in enumerate(made.calls):
                begun = events.count(f"call {call.id}")
                if not made.spawned.done:
                    assert len(told.get(call.id, [])) <= begun <= 1
                    continue
                assert begun == len(told.get(call.id, [])) == events.count(f"result {call.id}")
                assert begun == 1 or made.spawned.cancelled, "only a cancelled batch leaves calls that never began"
                if begun:
                    self.check(told[call.id][0], made.results[position] if made.results is not None else None)
                if made.results is not None and not made.disturbed:
                    runs, success = self.model(call.name)
                    assert (self.runs.get(call.id, 0), made.results[position].success) == (runs, success), call
        self.made = self.waiting()  # each is looked at once
        assert self.made or self.checked.open == 0

    def check(self, settled: Settled, result: ToolResult | None) -> None:
        id, outcome = settled.call.call_id, settled.outcome
        runs = self.runs.get(id, 0)
        decided = [event.rsplit(" ", 1)[1] for event in self.log.events if event.startswith(f"decided {id} ")]
        assert len(decided) == sum(event == f"asked {id}" for event in self.log.events) <= 1
        if decided:
            assert runs <= (1 if decided == ["allowed-once"] else 0), "one grant, one run"
        if isinstance(outcome, ToolFail):
            assert outcome.code not in ("DENIED", "ABORTED_BEFORE_DISPATCH") or runs == 0
            assert result is None or (isinstance(result, ToolFailure) and result.error == outcome.message)
        else:
            assert isinstance(outcome, ToolOk)
            assert outcome.value in ({"id": id}, {"id": "replaced"}, {"id": "put"})
            assert result is None or (isinstance(result, ToolSuccess) and result.value == thaw(outcome.value))

    # ---------------------------------------------------------------- the model

    def kinds(self, stage: Stage) -> list[str]:
        return [policy.kind for policy in self.policies if policy.stage == stage]

    def model(self, tool: str) -> tuple[int, bool]:
        """How often the tool runs, and whether the call succeeds."""
        verdict = next((kind for kind in self.kinds("pre") if kind != "pass"), "allow")
        decision = next((kind for kind in self.kinds("approval") if kind != "pass"), "unavailable")
        granted = verdict == "ask" and self.pipeline.approvals.mode == "ask" and decision in ("grant", "wait")
        guarded = next((kind for kind in self.kinds("guard") if kind != "pass"), None)
        skips_review = verdict in ("raise", "garbage") or (guarded == "raise" and (granted or verdict == "allow"))
        runs, success = 0, False
        if (verdict == "allow" or granted) and guarded is None:
            runs, success, raised = self.around_model(self.kinds("around"), tool, runs, granted)
            skips_review = skips_review or raised
        review = next((kind for kind in self.kinds("post") if kind != "pass"), "accept")
        return runs, success and not skips_review and review not in ("block", "raise")

    def around_model(self, kinds: list[str], tool: str, runs: int, granted: bool) -> tuple[int, bool, bool]:
        """How often the tool has run then, whether it succeeded, and whether a policy has raised."""
        if not kinds:
            if granted and runs:
                return runs, False, False
            return runs + 1, tool != "fails", False
        kind, *rest = kinds
        if kind == "raise":
            return runs, False, True
        if kind == "replace":
            return runs, True, False
        if kind == "twice":
            runs, _, raised = self.around_model(rest, tool, runs, granted)
            if raised:
                return runs, False, True
        return self.around_model(rest, tool, runs, granted)


run = machine(Calls, steps=25)
