"""The example of a package that adds a provider: installed as a stranger would, and chosen by a configuration."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import run

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "examples" / "provider_package"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder that the package is installed into, without a network."""
    folder = tmp_path_factory.mktemp("installed")
    words = ["--no-index", "--no-build-isolation", "--no-deps", "--disable-pip-version-check", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *words, "--target", str(folder), str(PACKAGE)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PIP_NO_INPUT": "1"},
    )
    assert done.returncode == 0, done.stderr
    return str(folder)


def test_the_page_shows_the_files_of_the_package_and_its_own_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "seams.md").read_text("utf-8")
    *files, own = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.DOTALL)
    names = ("pyproject.toml", "greenroom_echo/__init__.py", "greenroom.toml")
    assert files == [(PACKAGE / name).read_text("utf-8") for name in names]
    exec(compile(own, "docs/seams.md", "exec"), {})
    assert capsys.readouterr().out == "bass\n"


def test_a_model_of_an_installed_package_talks_where_a_configuration_chooses_it(target: str) -> None:
    file = PACKAGE / "greenroom.toml"
    done = run("chat", "--config", str(file), stdin="hello there\n", PYTHONPATH=target)
    assert (done.code, done.err) == (0, "")
    assert "You said: hello there" in done.out


def test_without_the_package_the_configuration_is_refused_with_what_there_is() -> None:
    done = run("chat", "--config", str(PACKAGE / "greenroom.toml"), stdin="hello\n")
    assert (done.code, done.out) == (1, "")
    assert "NO_PROVIDER  The seam llm has no provider echo; there are: scripted, openai, anthropic." in done.err


def test_an_option_that_the_provider_does_not_know_is_told_with_its_owner(target: str, tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text('[llm]\nprovider = "echo"\noptions = { prefx = "x" }\n')
    done = run("chat", "--config", str(file), stdin="hello\n", PYTHONPATH=target)
    assert (done.code, done.out) == (1, "")
    assert "prefx" in done.err
    assert "greenroom-echo 1.0.0" in done.err
