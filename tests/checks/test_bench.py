"""How figures are measured and held against their goals."""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import trio
from bench import __main__ as command
from bench import harness
from bench.goals import SUBJECTS, Goal, load_goals
from bench.harness import Figure, Measured, Sample, cost, measure, memory, rate, times, workload


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> dict[str, Figure]:
    """What the decorators declare for this module, afresh in each test."""
    figures: dict[str, Figure] = {}
    monkeypatch.setattr(harness, "_declared", {__name__: figures})
    monkeypatch.setattr(harness, "_CHECKPOINTS", 500)
    return figures


class TestAGoal:
    @pytest.mark.parametrize(
        ("goal", "value", "ratio", "met"),
        [
            (Goal("c", at_least=0.5), 1, 0.5, True),
            (Goal("c", at_least=0.5), 1_000_000, 0.49, False),
            (Goal("c", at_least=0.5), 1_000_000, None, False),
            (Goal("c", at_least=0.5), 1_000_000, math.nan, False),
            (Goal("KB", at_most=5), 5, None, True),
            (Goal("KB", at_most=5), 5.01, 0.1, False),
            (Goal("times", at_least=1.8), 1.7, 2, False),
            (Goal("checkpoints", at_most=80), math.nan, None, False),
        ],
    )
    def test_bounds_the_ratio_or_the_value(self, goal: Goal, value: float, ratio: float | None, met: bool) -> None:
        assert goal.met(value, ratio) is met

    @pytest.mark.parametrize("entry", ["at_least = 1\nat_most = 2", "", "at_least = 1\nunit = 'furlongs'"])
    def test_has_one_bound_and_a_known_unit(self, entry: str, tmp_path: Path) -> None:
        file = tmp_path / "goals.toml"
        unit = "" if "unit" in entry else "unit = 'c'\n"
        file.write_text(f'["waits/a"]\n{unit}{entry}\n')
        with pytest.raises(msgspec.ValidationError):
            load_goals("waits", file)

    def test_belongs_to_one_subject(self) -> None:
        parts = [part for parts in SUBJECTS.values() for part in parts]
        assert len(parts) == len(set(parts))
        assert list(load_goals("mailbox")) == [
            "mailbox/tell",
            "mailbox/send",
            "actor/ask-1",
            "actor/ask-100",
            "actor/ask-1-vs-pykka",
        ]


class TestAFigure:
    def test_of_a_rate_has_the_ratio_to_checkpoints(self, figures: dict[str, Figure]) -> None:
        @rate("a")
        async def checkpoints_again() -> float:
            return harness._CHECKPOINTS * 1000.0  # pyright: ignore[reportPrivateUsage]

        assert checkpoints_again.__name__ == "checkpoints_again"
        value, ratio, failure = measure(figures)["a"]
        assert (value, failure) == (500_000, None)
        assert ratio is not None
        assert ratio > 0

    def test_of_a_cost_is_in_checkpoints(self, figures: dict[str, Figure]) -> None:
        @cost("a")
        async def two_checkpoints() -> float:
            start = trio.current_time()
            for _ in range(2000):
                await trio.lowlevel.checkpoint()
            return (trio.current_time() - start) / 1000

        del two_checkpoints
        value, _, failure = measure(figures)["a"]
        assert failure is None
        assert value is not None
        assert 0.5 < value < 8

    def test_of_a_comparison_alternates_both(self, figures: dict[str, Figure]) -> None:
        calls: list[str] = []

        def beside() -> float:
            calls.append("beside")
            return 2.0

        @times("a", against=beside)
        async def ours() -> float:
            calls.append("ours")
            return 3.0

        @times("alone")
        async def alone() -> float:
            return 7.0

        del ours, alone
        measured = measure(figures)
        assert measured == {"a": Measured(1.5, 1.5), "alone": Measured(7, None)}
        assert calls == ["ours", "beside"] * 5

    def test_of_memory_is_that_of_another_process(self, figures: dict[str, Figure]) -> None:
        memory("a", count=3_000)(hold_kilobytes)
        value, ratio, failure = measure(figures)["a"]
        assert (ratio, failure) == (None, None)
        assert value is not None
        assert 8 <= value < 100  # 8 KB each, and its share of the process

    def test_is_the_median_of_five_rounds(self, figures: dict[str, Figure]) -> None:
        numbers = iter([9.0, 1.0, 5.0, 100.0, 2.0])
        times("a")(lambda: next(numbers))
        assert measure(figures) == {"a": Measured(5, None)}

    def test_that_raises_was_not_measured_and_does_not_disturb_the_others(self, figures: dict[str, Figure]) -> None:
        times("a")(lambda: 1 / 0)
        times("b")(lambda: 1.0)
        measured = measure(figures)
        assert measured["a"] == Measured(None, None, "ZeroDivisionError: division by zero")
        assert measured["b"] == Measured(1, None)

    def test_that_hangs_was_not_measured(self, figures: dict[str, Figure]) -> None:
        async def hang() -> float:
            await trio.sleep_forever()

        times("a")(hang)
        assert measure(figures, seconds=0.05)["a"] == Measured(None, None, "0 of its rounds ended within 0.05 s")

    def test_that_is_slow_is_the_median_of_the_rounds_that_ended(self, figures: dict[str, Figure]) -> None:
        async def ever_slower() -> float:
            calls.append(1)
            if len(calls) == 3:
                await trio.sleep_forever()
            return float(len(calls))

        calls: list[int] = []
        times("a")(ever_slower)
        assert measure(figures, seconds=1) == {"a": Measured(1.5, None, "2 of its rounds ended within 1 s")}

    def test_that_is_no_number_was_not_measured(self, figures: dict[str, Figure]) -> None:
        times("a")(lambda: math.nan)
        assert measure(figures)["a"].value is None

    def test_is_declared_once(self, figures: dict[str, Figure]) -> None:
        times("a")(lambda: 1.0)
        with pytest.raises(ValueError, match="twice"):
            times("a")(lambda: 1.0)

    def test_leaves_the_collector_as_it_was(self, figures: dict[str, Figure]) -> None:
        before = gc.get_threshold()

        async def tunes() -> float:
            gc.set_threshold(50_000, 20, 100)
            return 1.0

        times("a")(tunes)
        measure(figures)
        assert gc.get_threshold() == before


async def hold_kilobytes(count: int, measure: Callable[[], None]) -> None:
    held = [bytearray(b"x" * 8192) for _ in range(count)]
    measure()
    del held


class TestTheCommand:
    @pytest.fixture(autouse=True)
    def _bench(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def goals(subject: str) -> dict[str, Goal]:
            return {"waits/a": Goal("checkpoints", at_most=4), "waits/b": Goal("c", at_least=2)}

        def figures(module: str) -> dict[str, Figure]:
            def one(seconds: float) -> Sample:
                return Sample(self.value, None)

            return {"waits/a": Figure(one)}

        def found(module: str) -> object | None:
            return None if module.endswith("gateway") else object()

        self.value = 3.0
        monkeypatch.setattr(command, "load_goals", goals)
        monkeypatch.setattr(command, "declared", figures)
        monkeypatch.setattr("importlib.util.find_spec", found)

    def test_prints_one_object_a_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert command.main(["waits", "--json"]) == 1
        told = capsys.readouterr()
        assert [json.loads(line) for line in told.out.splitlines()] == [
            {"figure": "waits/a", "value": 3, "unit": "checkpoints", "ratio": None, "goal": 4, "met": True},
            {"figure": "waits/b", "value": None, "unit": "c", "ratio": None, "goal": 2, "met": False},
        ]
        assert told.err == "waits/b: no function declares it\n"

    def test_ends_well_only_if_every_goal_is_met(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def goals(subject: str) -> dict[str, Goal]:
            return {"waits/a": Goal("checkpoints", at_most=4)}

        monkeypatch.setattr(command, "load_goals", goals)
        assert command.main(["waits"]) == 0
        self.value = 5.0
        assert command.main(["waits"]) == 1

    def test_prints_a_table_for_people(self, capsys: pytest.CaptureFixture[str]) -> None:
        command.main(["waits"])
        out = capsys.readouterr().out
        assert "waits/a" in out
        assert "<= 4 checkpoints" in out

    @pytest.mark.parametrize("name", ["gateway", "no-such-subject"])
    def test_refuses_a_subject_that_is_not_there(self, name: str) -> None:
        with pytest.raises(SystemExit) as ended:
            command.main([name])
        assert ended.value.code == 2


@pytest.mark.parametrize("name", ["one-field", "ten-field"])
def test_a_workload_has_a_schema_and_two_answers(name: str) -> None:
    inputs = workload(name)
    assert list(inputs) == ["schema", "valid", "invalid"]
    names = {field["name"] for field in inputs["schema"]["fields"]}
    assert set(inputs["valid"]) == set(inputs["invalid"]) == names


def test_the_ten_field_form_is_what_the_figures_mean_by_it() -> None:
    fields = workload("ten-field")["schema"]["fields"]
    controls = [field["control"] for field in fields]
    assert controls == [
        "text",
        "editor",
        "number",
        "date",
        "confirm",
        "select",
        "checkbox",
        "password",
        "color",
        "time",
    ]
    rules = [rule for field in fields for rule in field["rule"]]
    assert len(rules) == 20
    assert rules.count("pattern") == 2
