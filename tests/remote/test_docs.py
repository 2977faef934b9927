"""What docs/remote.md shows is run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "remote.md").read_text("utf-8")


def test_what_the_documentation_shows_runs(tmp_path: Path) -> None:
    script = tmp_path / "services.py"
    script.write_text("\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)), "utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "Release(version='4.2', started_by='ada')",
        "release/exists {'version': '4.2', 'endpoint': 'release/start'}",
        "build 4.2",
        "test 4.2",
        "publish 4.2",
    ]
