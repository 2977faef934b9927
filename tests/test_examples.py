"""What the documentation shows is run: the examples, and the code of the README."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from greenroom.protocol.forms import parse_form
from greenroom.protocol.workflows import is_definition

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
README = (ROOT / "README.md").read_text("utf-8")


def _code_in(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def blocks(page: str, *, behind: str = "") -> list[str]:
    """The Python code on a page of the documentation, block by block, from a heading on."""
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    return _code_in(text[text.index(behind) :])


def printed(code: str, folder: Path, *, logged: str = "") -> str:
    """What a program prints that is run in a folder of its own. It must end well, and each line that it logs, if any,
    must hold `logged`."""
    script = folder / "shown.py"
    script.write_text(code, "utf-8")
    done = subprocess.run([sys.executable, str(script)], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not logged or logged not in line] == []
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(example: Path) -> None:
    done = subprocess.run([sys.executable, str(example)], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.json")), ids=lambda path: path.name)
def test_an_example_form_or_workflow_is_sound(example: Path) -> None:
    document = json.loads(example.read_text("utf-8"))
    assert is_definition(document) if "phases" in document else parse_form(document) is not None


def test_the_code_of_the_readme_runs(tmp_path: Path) -> None:
    (code,) = _code_in(README)
    assert "'publish': True" in printed(code, tmp_path)


def test_the_code_of_the_readme_is_the_example() -> None:
    (code,) = _code_in(README)
    example = (ROOT / "examples" / "embed.py").read_text("utf-8")
    assert code.strip() in example


def test_a_workflow_runs_as_the_documentation_shows(tmp_path: Path) -> None:
    out = printed(blocks("workflows")[0], tmp_path)
    assert out == "completed ['1 file', 'passed in attempt 2', 'told ops']\n"


def test_an_inbox_is_used_as_the_documentation_shows(tmp_path: Path) -> None:
    out = printed(blocks("agents", behind="## Its inbox")[0], tmp_path)
    assert out == "Planned.\nNotes written.\n"


def test_a_subagent_goes_on_by_itself_as_the_documentation_shows(tmp_path: Path) -> None:
    out = printed(blocks("subagents")[0], tmp_path)
    asked, begun, on_it, finished, what, answer = out.splitlines()
    assert begun.startswith('tool: {"subagentId":"reader-')
    assert finished.endswith("(changes) has finished:")
    assert what == "`open` takes no mode any more."
    assert (asked, on_it) == ("user: Which version is next?", "assistant: The reader is on it.")
    assert answer == "assistant: We need a major version."


def test_a_policy_is_added_as_the_documentation_shows(tmp_path: Path) -> None:
    out = printed(blocks("policies")[0], tmp_path)
    allowed, denied = out.splitlines()
    assert "value='ran ls'" in allowed
    assert "nothing is deleted" in denied
    assert "value" not in denied


def test_a_session_is_kept_as_the_documentation_shows(tmp_path: Path) -> None:
    out = printed(blocks("sessions")[0], tmp_path)
    assert out == "0 user/message\n1 todo/write\nRead the plan\n"


def test_files_are_worked_on_as_the_documentation_shows(tmp_path: Path) -> None:
    code, policy = blocks("coding")
    begin = "        greenroom.observation_policy(runtime.bus)\n"
    assert begin in code
    script = tmp_path / "coding.py"
    locked = code.replace(begin, begin + textwrap.indent(policy, " " * 8)).replace("notes.md", "LICENSE")
    for text, shown in ((code, "'line': 'two'"), (locked, "")):
        script.write_text(text, "utf-8")
        done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert (done.returncode == 0) is bool(shown), done.stderr
        assert shown in done.stdout
    assert "The licence stays as it is" in done.stderr


def test_a_tool_goes_on_in_the_background_as_the_documentation_shows(tmp_path: Path) -> None:
    out = printed(blocks("jobs")[0], tmp_path)
    assert out == "docs is built\nbuild-1 completed ['compiled', 'linked']\n"


def test_services_are_called_as_the_documentation_shows(tmp_path: Path) -> None:
    assert printed("\n".join(blocks("remote")), tmp_path, logged="no token is configured").splitlines() == [
        "Release(version='4.2', started_by='ada')",
        "release/exists {'version': '4.2', 'endpoint': 'release/start'}",
        "build 4.2",
        "test 4.2",
        "publish 4.2",
    ]
