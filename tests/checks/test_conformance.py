"""How a file of recorded cases is run and counted."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from tests.clock import advance
from tests.conformance import runner
from tests.conformance.__main__ import main
from tests.conformance.departures import Departure, Rules, load_rules
from tests.conformance.recorded import CASES, fixture
from tests.conformance.runner import Case, Ops, known_areas, load_area, run_case, run_file

NO_RULES = Rules([], [])


def departure(when: str, expect: str) -> Departure:
    entry = {"rule": "a rule", "ops": ["tools.function"], "when": when, "expect": {"json": expect}}
    return msgspec.convert(entry, Departure)


def judged(answer: Any, record: Any, rules: Rules = NO_RULES, kind: str = "absent") -> runner.Verdict:
    given = {"tools": [{"name": "a", "kind": kind}], "name": "a"}
    return run_case({"tools.function": lambda _: answer}, Case("c", "tools.function", given, record), rules)


RULES = Rules([departure("tool_returns_nothing", '{"value": null}')], [])
RECORD = {"error": {"code": "TOOL"}}


class TestADeparture:
    def test_is_an_answer_that_differs_and_is_what_the_entry_expects(self) -> None:
        verdict = judged({"value": None}, RECORD, RULES)
        assert verdict.failure is None
        assert verdict.departure is RULES.departures[0]

    def test_is_none_if_the_answer_is_as_recorded(self) -> None:
        verdict = judged(RECORD, RECORD, RULES)
        assert (verdict.failure, verdict.departure) == (None, None)

    def test_is_none_if_the_answer_is_neither_as_recorded_nor_as_expected(self) -> None:
        verdict = judged({"value": 1}, RECORD, RULES)
        assert verdict.failure is not None
        assert verdict.departure is None

    def test_is_none_for_another_input(self) -> None:
        assert judged({"value": None}, RECORD, RULES, kind="echo").failure is not None

    def test_is_none_for_another_op(self) -> None:
        case = Case("c", "other", {"tools": [{"name": "a", "kind": "absent"}], "name": "a"}, RECORD)
        assert run_case({"other": lambda _: {"value": None}}, case, RULES).failure is not None

    @pytest.mark.parametrize(
        "entry",
        [
            {"when": "tool_returns_nothing", "expect": {}},
            {"when": "tool_returns_nothing", "expect": {"json": "1", "function": "fails_refused_patterns"}},
            {"when": "tool_returns_nothing", "expect": {"json": "no json"}},
            {"when": "tool_returns_nothing", "expect": {"function": "no_such_function"}},
            {"when": "no_such_predicate", "expect": {"json": "1"}},
            {"when": "tool_returns_nothing", "expect": {"json": "1"}, "surplus": 1},
        ],
    )
    def test_with_a_mistake_is_refused_when_it_is_read(self, entry: dict[str, Any]) -> None:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"rule": "a rule", "ops": []} | entry, Departure)


def test_every_departure_is_used_by_a_kept_case_or_was_known_before() -> None:
    unused = [entry for entry in load_rules().departures if entry.known is None]
    for area in known_areas():
        ops = load_area(area)
        if not any(op in ops for entry in unused for op in entry.ops):
            continue
        used = [verdict.departure for verdict in run_file(ops, CASES / f"{area}.jsonl", load_rules()).departed]
        unused = [entry for entry in unused if entry not in used]
    assert unused == []


def raises(crash: BaseException) -> Callable[[Any], Any]:
    def op(given: Any) -> Any:
        raise crash

    return op


class TestACaseFails:
    def verdict(self, op: Callable[[Any], Any]) -> runner.Verdict:
        return run_case({"op": op}, Case("c", "op", {}, None), NO_RULES)

    def test_if_its_op_is_unknown(self) -> None:
        failure = run_case({"known": lambda _: None}, Case("c", "op", {}, None), NO_RULES).failure
        assert failure is not None
        assert "known" in failure

    @pytest.mark.parametrize("crash", [ValueError("wrong"), SystemExit(0), BaseExceptionGroup("", [GeneratorExit()])])
    def test_if_the_area_crashes(self, crash: BaseException) -> None:
        failure = self.verdict(raises(crash)).failure
        assert failure is not None
        assert failure.startswith("crashed: ")

    def test_unless_it_is_interrupted_from_outside(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            self.verdict(raises(KeyboardInterrupt()))

    def test_if_it_spins_longer_than_its_seconds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def spin(given: Any) -> Any:
            for number in itertools.count():
                try:
                    assert number >= 0
                except Exception:  # what the code under test may do to an interruption
                    return None

        monkeypatch.setattr(runner, "CASE_SECONDS", 0.05)
        assert self.verdict(spin).failure == "took more than 0.05 s"

    def test_if_it_waits_longer_than_its_seconds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def wait(given: Any) -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep, 1)  # the clock stands still

        monkeypatch.setattr(runner, "CASE_SECONDS", 0.05)
        assert self.verdict(wait).failure == "took more than 0.05 s"

    def test_if_its_line_is_no_case(self, tmp_path: Path) -> None:
        file = tmp_path / "cases.jsonl"
        file.write_text('{"id": "a"}\n[]\nno json\n\n')
        report = run_file({}, file, NO_RULES)
        assert [verdict.id for verdict in report.failed] == ["line 1", "line 2", "line 3", "line 4"]


def test_a_case_has_a_clock_that_only_it_moves() -> None:
    async def script(given: Any) -> Any:
        at: list[float] = []

        async def sleeper(seconds: float) -> None:
            await trio.sleep(seconds)
            at.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(sleeper, 2)
            nursery.start_soon(sleeper, 1)
            before = trio.current_time()
            await advance(given["ms"])
            after = trio.current_time()
            nursery.cancel_scope.cancel()
        return {"before": before, "after": after, "at": at}

    start = time.monotonic()
    record = {"before": 0, "after": 1.5, "at": [1]}
    assert run_case({"op": script}, Case("c", "op", {"ms": 1500}, record), NO_RULES).failure is None
    assert time.monotonic() - start < 1


def test_the_judge_does_not_see_what_the_area_does_to_the_input() -> None:
    def steals(given: Any) -> Any:
        given["tools"][0]["kind"] = "absent"
        return {"value": None}

    case = Case("c", "tools.function", {"tools": [{"name": "a", "kind": "echo"}], "name": "a"}, {"value": 1})
    assert run_case({"tools.function": steals}, case, RULES).failure is not None


OPS: Ops = {"tools.function": lambda given: {"value": given["answer"]}}


class TestTheCommand:
    @pytest.fixture
    def file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Two cases that pass (one holds a raw line separator), a departure, a failure and an unknown op."""

        def line(number: int, op: str, answer: Any, output: Any, kind: str = "echo") -> str:
            given = {"tools": [{"name": "a", "kind": kind}], "name": "a", "answer": answer}
            case = {"id": f"c-{number}", "op": op, "input": given, "output": output}
            return json.dumps(case, ensure_ascii=False) + "\n"

        def load(area: str) -> Ops:
            return OPS

        monkeypatch.setattr("tests.conformance.__main__.load_area", load)
        path = tmp_path / "cases.jsonl"
        path.write_text(
            line(1, "tools.function", "a\u2028b\x85c", {"value": "a\u2028b\x85c"})
            + line(2, "tools.function", 1, {"value": 1.0})
            + line(3, "tools.function", None, {"error": {"code": "TOOL"}}, kind="absent")
            + line(4, "tools.function", 1, {"value": 2})
            + line(5, "unheard", 1, {"value": 1}),
            encoding="utf-8",
        )
        return path

    def test_counts_every_line_once(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["tools", str(file)]) == 1
        failed_4, failed_5, last = capsys.readouterr().out.splitlines()
        assert failed_4.startswith("c-4: $.value: ")
        assert failed_5.startswith("c-5: unknown op 'unheard'")
        assert last == "tools: 2 passed, 2 failed, 1 departures"

    def test_ends_well_if_nothing_failed(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        file.write_text("".join(file.read_text().splitlines(keepends=True)[-3:-2]))
        assert main(["tools", str(file)]) == 0
        assert capsys.readouterr().out == "tools: 0 passed, 0 failed, 1 departures\n"

    @pytest.mark.parametrize("arguments", [["no-such-area"], ["forms", "no-such-file"], []])
    def test_refuses_what_is_not_there(self, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2


def test_a_fixture_is_read_beside_the_cases_first(tmp_path: Path) -> None:
    (tmp_path / "shop.json").write_text('{"beside": true}')
    (tmp_path / "cases.jsonl").write_text('{"id": "c", "op": "op", "input": {}, "output": {"beside": true}}\n')
    assert run_file({"op": lambda _: fixture("shop.json")}, tmp_path / "cases.jsonl", NO_RULES).passed == 1
    with pytest.raises(FileNotFoundError):
        fixture("shop.json")


PATTERN = {"control": "text", "name": "x", "rule": {"pattern": "(?=a)"}}


class TestWhatIsExpectedOfARefusedPattern:
    """The departures that few recorded cases use, on cases made for them."""

    def verdict(self, op: str, given: Any, record: Any) -> runner.Verdict:
        area = op.partition(".")[0]
        return run_case(load_area(f"{area}s"), Case("c", op, given, record), load_rules())

    def test_a_form_with_it_is_not_accepted(self) -> None:
        schema = {"fields": [PATTERN]}
        assert self.verdict("form.parse", {"schema": schema}, {"accepted": True, "schema": schema}).departure
        assert self.verdict("form.audit", {"schema": schema}, {"structural": True, "sound": True}).departure
        opened: Any = {"opened": {"status": "editing"}, "steps": []}
        assert self.verdict("form.script", {"schema": schema, "steps": []}, opened).departure

    def test_a_present_value_fails_it_in_its_place(self) -> None:
        rule = {"pattern": "(a)\\1", "minimum": 5, "email": True}
        fields = [PATTERN, {"control": "text", "name": "y", "rule": rule}, {"control": "text", "name": "z"}]
        given = {"schema": {"fields": fields}, "values": {"y": "aa", "z": "a"}}
        record = [{"field": "y", "rule": "minimum"}, {"field": "y", "rule": "email"}]
        assert self.verdict("form.evaluate", given, record).departure

    @pytest.mark.parametrize(
        "step",
        [
            {"do": "ask", "from": "a", "to": "b", "schema": {"fields": [PATTERN]}},
            {"do": "tool.ask", "from": "a", "args": {"to": "b", "schema": {"fields": [PATTERN]}}},
            {"do": "park", "name": "b", "schema": {"fields": [PATTERN]}},
        ],
    )
    def test_it_is_not_asked(self, step: dict[str, Any]) -> None:
        given: Any = {"options": {}, "steps": [{"do": "add", "name": "b"}, step]}
        record = {"steps": [{"terminals": ["b"]}, {"ask": 0, "id": "$1", "events": [["pending", "$1"]]}]}
        assert self.verdict("terminal.script", given, record).departure
