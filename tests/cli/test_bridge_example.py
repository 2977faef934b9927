"""The example of `docs/bridge.md`, as it stands there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import GREENROOM, ROOT, SECONDS, Server, begin
from tests.cli.test_commands import wait_for_form

GUIDE = (ROOT / "docs" / "bridge.md").read_text("utf-8")
JQ = """#!/usr/bin/env python3
import json, sys
assert sys.argv[1:] == ["-r", ".[0].id"]
print(json.load(sys.stdin)[0]["id"])
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where the commands of the example are; a machine may have no jq."""
    (tmp_path / "jq").write_text(JQ, "utf-8")
    (tmp_path / "jq").chmod(0o755)
    return f"{tmp_path}:{GREENROOM.parent}:{os.environ['PATH']}"


def test_the_example_answers_a_form_and_sees_it_answered(server: Server, path: str, tmp_path: Path) -> None:
    (example,) = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
    form = tmp_path / "form.json"
    form.write_text('{"fields": [{"control": "confirm", "name": "go", "rule": {"required": true}}]}', "utf-8")
    asker = begin("ask", "reviewer", str(form), url=server.url)
    id = wait_for_form(server)["id"]
    shell = subprocess.Popen(
        ["bash", "-ec", f"{example}\nwait"],
        env={
            **os.environ,
            "PATH": path,
            "GREENROOM_URL": server.url,
            "GATEWAY": server.url.replace("ws://", "http://").removesuffix("/rpc"),
        },
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert shell.stdout is not None
    try:
        assert json.loads(asker.communicate(timeout=SECONDS)[0]) == {"go": True}
        printed = ""
        while (
            f'event: answer\ndata: {{"id":"{id}"}}' not in printed
            or '{"success":true,"value":{"go":true}}' not in printed
        ):
            line = shell.stdout.readline()
            assert line, printed
            printed += line.replace("}event:", "}\nevent:")  # two programs print here
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.communicate(timeout=SECONDS)
    assert f"event: pending\nid: {id}\ndata: {{" in printed
