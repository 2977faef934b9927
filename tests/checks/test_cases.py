"""Which specified lines count as held."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.cases import __main__ as command
from tests.cases.collect import Collected
from tests.cases.ledger import Digest, Later, Result, load_ledger, standing

ROOT = Path(__file__).parent.parent.parent
DIGEST = Digest(5, [Later("the console", ["4-5"])])
PASSED, FAILED = Result("test_a", None), Result("test_b", "E broke")


def test_a_line_is_held_if_all_its_tests_pass() -> None:
    results = {("forms", number): [PASSED, PASSED] for number in (1, 2, 3)}
    told = standing("forms", DIGEST, results)
    assert str(told) == "forms: 3/5, 2 later"
    assert not told.overdue


def test_a_line_with_one_test_that_does_not_pass_is_failing() -> None:
    results = {("forms", 1): [PASSED, FAILED], ("forms", 2): [PASSED], ("forms", 3): [PASSED]}
    told = standing("forms", DIGEST, results)
    assert str(told) == "forms: 2/5, 2 later\n  failing: 1 by test_b: E broke"
    assert told.overdue


def test_a_due_line_without_a_test_is_missing() -> None:
    told = standing("forms", DIGEST, {("forms", 2): [PASSED], ("terminals", 1): [PASSED]})
    assert str(told) == "forms: 1/5, 2 later\n  missing: 1, 3"
    assert told.overdue


def test_a_later_line_that_is_held_early_counts_as_held() -> None:
    told = standing("forms", DIGEST, {("forms", number): [PASSED] for number in (1, 2, 3, 5)})
    assert str(told) == "forms: 4/5, 1 later"
    assert not told.overdue


def test_a_later_line_that_fails_is_told_and_is_no_reason_to_fail() -> None:
    results = {("forms", number): [PASSED] for number in (1, 2, 3)} | {("forms", 4): [FAILED]}
    told = standing("forms", DIGEST, results)
    assert str(told) == "forms: 3/5, 1 later\n  failing: 4 by test_b: E broke"
    assert not told.overdue


@pytest.mark.parametrize("numbers", [["0"], ["6"], ["4-6"], ["3", "2-4"], ["one"]])
def test_a_ledger_with_impossible_numbers_is_refused(numbers: list[str]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"lines": 5, "later": [{"capability": "x", "numbers": numbers}]}, Digest)


def test_the_ledger_of_the_project_can_be_read() -> None:
    ledger = load_ledger()
    assert len(ledger["terminals"].due) == ledger["terminals"].lines == 39
    assert all(digest.lines > 0 for digest in ledger.values())


SUITE = """
import pytest

@pytest.mark.case("tools", 1)
def test_passes(): pass

@pytest.mark.case("tools", 2)
@pytest.mark.case("tools", 3)
@pytest.mark.parametrize("n", [1, 2])
def test_passes_with_one_parameter_only(n): assert n == 1

@pytest.mark.case("tools", 4)
@pytest.mark.skip(reason="not now")
def test_is_skipped(): pass

@pytest.mark.case("tools", 5)
@pytest.mark.xfail
def test_is_expected_to_fail(): assert False

@pytest.fixture
def broken():
    yield
    raise ValueError("left behind")

@pytest.mark.case("tools", 6)
def test_fails_in_its_teardown(broken): pass

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.case("tools", 7))])
def test_has_a_marked_parameter(n): assert n == 2

@pytest.mark.case("forms", 1)
def test_is_of_another_digest(): assert False

def test_is_not_marked(): assert False
"""


def run_marked_apart(root: Path) -> Collected:
    """Run the collector on a suite of its own, in a process of its own: pytest does not nest."""
    code = (
        "import pathlib, sys, msgspec\n"
        "from tests.cases.collect import run_marked\n"
        "collected = run_marked(['tools'], pathlib.Path(sys.argv[1]))\n"
        "lines = {str(line[1]): results for line, results in collected.results.items()}\n"
        "print(msgspec.json.encode((lines, collected.troubles)).decode())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(root)], cwd=ROOT, capture_output=True, text=True, check=True)
    lines, troubles = msgspec.json.decode(done.stdout, type=tuple[dict[str, list[Result]], list[str]])
    return Collected({("tools", int(number)): results for number, results in lines.items()}, troubles)


def test_the_marked_tests_are_run_and_nothing_passes_that_did_not(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "test_broken.py").write_text('import no_such_module  # mark.case("tools", 8)\n')
    (tmp_path / "test_other.py").write_text('raise SystemExit("never imported")\n')
    results, troubles = run_marked_apart(tmp_path)
    failures = {
        number: [failure for _, failure in tests if failure is not None] for (_, number), tests in results.items()
    }
    assert failures[1] == []
    assert len(results["tools", 2]) == 2
    assert len(failures[2]) == len(failures[3]) == 1
    assert "assert 2 == 1" in failures[2][0]
    assert "skipped" in failures[4][0]
    assert "skipped" in failures[5][0]
    assert "left behind" in failures[6][0]
    assert failures[7] == []
    assert sorted(failures) == [1, 2, 3, 4, 5, 6, 7]
    (trouble,) = troubles
    assert "no_such_module" in trouble


@pytest.mark.parametrize(
    ("mark", "told"),
    [('"forms", 99', "lines 1 to 41, not 99"), ('"forms"', "write pytest.mark.case"), ('"froms", 1', "no 'froms'")],
)
def test_a_mark_that_names_no_line_stops_the_suite(mark: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_collection_modifyitems\n")
    (tmp_path / "test_marked.py").write_text(f"import pytest\n@pytest.mark.case({mark})\ndef test_a(): pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert told in done.stdout + done.stderr


class TestTheCommand:
    @pytest.fixture(autouse=True)
    def _suite(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def ledger() -> dict[str, Digest]:
            return {"forms": DIGEST, "tools": Digest(1)}

        def run(digests: list[str]) -> Collected:
            return Collected({("forms", number): [PASSED] for number in (1, 2, 3)}, ["could not be collected: x"])

        monkeypatch.setattr(command, "load_ledger", ledger)
        monkeypatch.setattr(command, "run_marked", run)

    def test_ends_with_1_if_a_due_line_is_not_held(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert command.main([]) == 1
        told = capsys.readouterr()
        assert told.out == "forms: 3/5, 2 later\ntools: 0/1, 0 later\n  missing: 1\n"
        assert told.err == "could not be collected: x\n"

    def test_looks_at_the_named_digests_only(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert command.main(["forms"]) == 0
        assert capsys.readouterr().out == "forms: 3/5, 2 later\n"

    def test_refuses_a_digest_that_does_not_exist(self) -> None:
        with pytest.raises(SystemExit) as ended:
            command.main(["form"])
        assert ended.value.code == 2
