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
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    script = tmp_path / "embed.py"
    script.write_text(code, "utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "'publish': True" in done.stdout


def test_the_code_of_the_readme_is_the_example() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    example = (ROOT / "examples" / "embed.py").read_text("utf-8")
    assert code.strip() in example


def test_a_workflow_runs_as_the_documentation_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "workflows.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    script = tmp_path / "night.py"
    script.write_text(code, "utf-8")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout == "completed ['1 file', 'passed in attempt 2', 'told ops']\n"


def test_an_inbox_is_used_as_the_documentation_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "agents.md").read_text("utf-8")
    (code,) = re.findall(r"## Its inbox\n.*?```python\n(.*?)```", page, re.DOTALL)
    script = tmp_path / "inbox.py"
    script.write_text(code, "utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout == "Planned.\nNotes written.\n"


def test_a_subagent_goes_on_by_itself_as_the_documentation_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "subagents.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    script = tmp_path / "subagents.py"
    script.write_text(code, "utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    asked, begun, on_it, finished, what, answer = done.stdout.splitlines()
    assert begun.startswith('tool: {"subagentId":"reader-')
    assert finished.endswith("(changes) has finished:")
    assert what == "`open` takes no mode any more."
    assert (asked, on_it) == ("user: Which version is next?", "assistant: The reader is on it.")
    assert answer == "assistant: We need a major version."


def test_a_policy_is_added_as_the_documentation_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "policies.md").read_text("utf-8")
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    script = tmp_path / "policy.py"
    script.write_text(code, "utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    allowed, denied = done.stdout.splitlines()
    assert "value='ran ls'" in allowed
    assert "nothing is deleted" in denied
    assert "value" not in denied


def test_a_session_is_kept_as_the_documentation_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "sessions.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    script = tmp_path / "session.py"
    script.write_text(code, "utf-8")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout == "0 user/message\n1 todo/write\nRead the plan\n"


def test_files_are_worked_on_as_the_documentation_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "coding.md").read_text("utf-8")
    code, policy = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
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
    page = (ROOT / "docs" / "jobs.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    script = tmp_path / "jobs.py"
    script.write_text(code, "utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout == "docs is built\nbuild-1 completed ['compiled', 'linked']\n"
