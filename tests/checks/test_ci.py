"""What the machine that runs everything relies on."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_the_readme_holds_the_command_that_ci_runs() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv ") and line.endswith(" -m pytest")]
    assert commands == ["python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/python -m pytest"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
