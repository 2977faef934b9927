"""`greenroom mcp`: a real process, with the package's own client at its other end, and with worse ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
import trio
from mcp import Client, StdioServerParameters

from tests.cli.conftest import GREENROOM, Server, begin, run, shared_server
from tests.contextprotocol.conftest import FORM, accept, answering, texts

__all__ = ["shared_server"]

CALL = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def command(*words: str) -> StdioServerParameters:
    return StdioServerParameters(command=str(GREENROOM), args=["mcp", *words])


async def test_a_client_starts_it_and_its_person_is_asked(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    elicit, asked = answering(accept(ship=True))
    with trio.fail_after(30):
        async with Client(command("--workspace", str(tmp_path)), elicitation_callback=elicit) as mcp:
            listed = [tool.name for tool in (await mcp.list_tools()).tools]
            answer = await mcp.call_tool("ask", {"to": "person", "schema": FORM})
            files = await mcp.call_tool("workspace", {"operation": "list"})
    assert listed == ["describe", "infer", "workspace", "ask"]
    assert (answer.structured_content, len(asked)) == ({"ship": True}, 1)
    assert [file["path"] for file in json.loads(texts(files)[0])] == ["a.txt"]


async def test_the_tools_and_terminals_of_a_gateway_are_served(shared_server: Server) -> None:
    elicit, _ = answering(accept(ship=True))
    with trio.fail_after(30):
        async with Client(
            command("--url", shared_server.url, "--person", "reviewer"), mode="legacy", elicitation_callback=elicit
        ) as mcp:
            listed = [tool.name for tool in (await mcp.list_tools()).tools]
            answer = await mcp.call_tool("ask", {"to": "reviewer", "schema": FORM})
            nobody = await mcp.call_tool("ask", {"to": "nobody", "schema": FORM})
    assert listed == ["ask", "describe", "infer"]
    assert answer.structured_content == {"ship": True}
    assert (nobody.is_error, "reviewer" in texts(nobody)[0]) == (True, True), "it names the terminals there are"


async def test_policies_of_its_configuration_hold_for_the_tools_of_a_gateway(
    shared_server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text('[approvals]\ntools = ["describe"]\n')
    with trio.fail_after(30):
        async with Client(command("--config", str(file), "--url", shared_server.url)) as mcp:
            gated = await mcp.call_tool("describe", {"name": "infer"})
            free = await mcp.call_tool("infer", {"operation": "infer", "samples": [1]})
    assert gated.is_error
    assert "approval" in texts(gated)[0]
    assert not free.is_error, texts(free)


async def test_it_serves_http_with_what_a_configuration_says_until_it_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "greenroom.toml"
    file.write_text(f'[workspaces]\nroots = ["{tmp_path}"]\n')
    process = begin("mcp", "--http", "--config", str(file))
    try:
        assert process.stdout is not None
        url = await trio.to_thread.run_sync(process.stdout.readline)
        offered = ["describe", "infer", "workspace", "ask"]
        with trio.fail_after(30):
            async with Client(url.strip()) as mcp:
                assert [tool.name for tool in (await mcp.list_tools()).tools] == offered
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.communicate(timeout=10)


def talk(*lines: str) -> tuple[list[dict[str, object]], int]:
    """What it answers to these lines before its input ends, and its exit code."""
    done = subprocess.run([GREENROOM, "mcp"], input="".join(lines), capture_output=True, text=True, timeout=30)
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


def test_it_ends_with_its_input_whatever_came_there() -> None:
    said, code = talk("no JSON\n", '{"jsonrpc": "2.0"}\n', "\0\n", json.dumps(CALL | {"params": HELLO}) + "\n")
    assert code == 0
    (answer,) = [message for message in said if message.get("id") == 1]
    assert "result" in answer


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_a_signal_while_its_client_says_nothing(number: signal.Signals) -> None:
    process = begin("mcp", stdin=subprocess.PIPE)
    try:
        assert process.stderr is not None
        while "Forms are answered at" not in process.stderr.readline():
            pass
        process.send_signal(number)
        assert process.wait(10) == 128 + number
    finally:
        process.kill()
        process.communicate(timeout=10)


def test_a_message_without_end_is_refused() -> None:
    done = subprocess.run([GREENROOM, "mcp"], input="x" * (5 << 20), capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "SIZE" in done.stderr


def test_without_the_package_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError(name='mcp')")
    ended = run("mcp", stdin="", PYTHONPATH=os.fspath(tmp_path))
    assert ended.code == 1
    assert "pip install 'greenroom[mcp]'" in ended.err


def test_a_gateway_that_is_not_there_is_named() -> None:
    ended = run("mcp", "--url", "ws://127.0.0.1:9/rpc", stdin="")
    assert ended.code == 1
    assert "greenroom serve" in ended.err
