"""What docs/remote.md shows is run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "remote.md").read_text("utf-8")


def test_a_remote_method_is_called_as_the_documentation_shows(tmp_path: Path) -> None:
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    script = tmp_path / "releases.py"
    script.write_text(code, "utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    started, refused = done.stdout.splitlines()
    assert started == "Release(version='4.2', started_by='ada')"
    assert refused == "release/exists {'version': '4.2', 'endpoint': 'release/start'}"
