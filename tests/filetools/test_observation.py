"""No agent changes what it has not seen as it is, whoever else changes it: another agent, or another program."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Literal

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import ToolError
from greenroom.protocol.tools import ToolCall, ToolFailure
from greenroom.runtime.policies import observation, observation_policy
from greenroom.runtime.restart import Restart
from tests.filetools.conftest import Desk, Party


@pytest.fixture
async def watched(desk: Desk) -> Desk:
    desk.observe()
    return desk


async def test_a_file_is_read_before_it_is_written_over(watched: Desk) -> None:
    watched.seed({"a": "old"})
    assert await watched.refused("write", "ada", file_path="a", content="new") == "FS_STALE_VERSION"
    await watched.call("read", "ada", file_path="a")
    assert (await watched.call("write", "ada", file_path="a", content="new"))["before"] == "old"
    assert (await watched.call("write", "ada", file_path="a", content="newer"))["before"] == "new"


async def test_a_file_that_is_not_there_may_be_made_unseen(watched: Desk) -> None:
    watched.seed({})
    assert (await watched.call("write", "ada", file_path="a", content="x"))["operation"] == "create"
    assert (await watched.call("edit", "ada", file_path="a", old_string="x", new_string="y"))["after"] == "y"


async def test_an_edit_of_something_unseen_and_of_something_missing_differ(watched: Desk) -> None:
    watched.seed({"a": "x"})
    assert await watched.refused("edit", "ada", file_path="a", old_string="x", new_string="y") == "FS_NOT_OBSERVED"
    assert await watched.refused("edit", "ada", file_path="b", old_string="x", new_string="y") == "FS_NOT_OBSERVED"
    await watched.refused("read", "ada", file_path="b")
    assert await watched.refused("edit", "ada", file_path="b", old_string="x", new_string="y") == "FS_NOT_FOUND"
    assert (await watched.call("write", "ada", file_path="b", content="x"))["operation"] == "create"


async def test_what_one_agent_has_seen_another_has_not(watched: Desk) -> None:
    watched.seed({"a": "x"})
    await watched.call("read", "ada", file_path="a")
    assert await watched.refused("edit", "bob", file_path="a", old_string="x", new_string="y") == "FS_NOT_OBSERVED"
    assert await watched.refused("edit", file_path="a", old_string="x", new_string="y") == "FS_NOT_OBSERVED"
    await watched.call("read", "bob", file_path="a")
    await watched.call("edit", "bob", file_path="a", old_string="x", new_string="y")
    assert await watched.refused("edit", "ada", file_path="a", old_string="y", new_string="z") == "FS_STALE_VERSION"


async def test_finding_a_line_is_not_seeing_the_file(watched: Desk) -> None:
    watched.seed({"a": "x"})
    await watched.call("grep", "ada", pattern="x")
    await watched.call("glob", "ada", pattern="a")
    assert await watched.refused("edit", "ada", file_path="a", old_string="x", new_string="y") == "FS_NOT_OBSERVED"


@pytest.mark.parametrize("change", ["x, and more", None])
async def test_what_another_program_does_to_the_disk_counts(watched: Desk, tmp_path: Path, change: str | None) -> None:
    path = tmp_path / "a"
    path.write_text("x")
    await watched.mount(tmp_path)
    await watched.call("read", "ada", file_path="a")
    if change is None:
        path.unlink()
    else:
        path.write_text(change)
    assert await watched.refused("edit", "ada", file_path="a", old_string="x", new_string="y") == "FS_STALE_VERSION"
    assert await watched.refused("write", "ada", file_path="a", content="y") == "FS_STALE_VERSION"
    assert (path.read_text() if path.exists() else None) == change
    if change is not None:  # another one has seen it meanwhile, but not this one
        await watched.call("read", "bob", file_path="a")
        assert await watched.refused("write", "ada", file_path="a", content="y") == "FS_STALE_VERSION"
        assert (await watched.call("write", "bob", file_path="a", content="y"))["before"] == change


async def test_a_file_that_came_meanwhile_is_not_written_over(watched: Desk, tmp_path: Path) -> None:
    await watched.mount(tmp_path)
    await watched.refused("read", "ada", file_path="a")
    (tmp_path / "a").write_text("theirs")
    assert await watched.refused("write", "ada", file_path="a", content="mine") == "FS_STALE_VERSION"
    assert (tmp_path / "a").read_text() == "theirs"


async def test_calls_made_at_once_do_not_overwrite_each_other(watched: Desk, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("0")
    await watched.mount(tmp_path)
    await watched.call("read", "ada", file_path="a")
    await watched.call("read", "bob", file_path="a")
    written: list[str] = []

    async def write(who: str) -> None:
        code = await attempt(watched, "write", who, "a", who)
        assert code in (None, "FS_STALE_VERSION")
        if code is None:
            written.append(who)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write, "ada")
        nursery.start_soon(write, "bob")
    assert [(tmp_path / "a").read_text()] == written


async def test_an_agent_that_begins_anew_has_seen_nothing(watched: Desk) -> None:
    watched.seed({"a": "x"})
    await watched.call("read", "ada", file_path="a")
    await watched.parties["ada"].stop()
    watched.parties["ada"] = watched.party("ada")
    assert await watched.refused("write", "ada", file_path="a", content="y") == "FS_STALE_VERSION"


async def test_an_agent_that_was_restarted_has_seen_nothing(watched: Desk) -> None:
    watched.seed({"a": "x"})
    ref = watched.runtime.spawn(lambda: Party(watched.tools), "eve", restart=Restart("on_failure"))
    watched.parties["eve"] = ref
    await watched.call("read", "eve", file_path="a")
    ref.actor.fail(ValueError("broken"))
    await trio.testing.wait_all_tasks_blocked()
    assert await watched.refused("write", "eve", file_path="a", content="y") == "FS_STALE_VERSION"


async def test_what_is_remembered_of_an_agent_is_bounded(watched: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "MOST", 2)
    watched.seed({"a": "x", "b": "x", "c": "x"})
    for path in ("a", "b", "a", "c"):
        await watched.call("read", "ada", file_path=path)
    assert await watched.refused("write", "ada", file_path="b", content="y") == "FS_STALE_VERSION"
    await watched.call("write", "ada", file_path="a", content="y")
    await watched.call("write", "ada", file_path="c", content="y")


async def test_a_policy_that_has_ended_decides_nothing(desk: Desk) -> None:
    end = observation_policy(desk.runtime.bus)
    desk.seed({"a": "x"})
    assert await desk.refused("write", file_path="a", content="y") == "FS_STALE_VERSION"
    end()
    end()
    assert (await desk.call("write", file_path="a", content="y"))["before"] == "x"


@pytest.mark.parametrize("policy", [True, False])
async def test_a_batch_of_a_model_goes_by_what_its_earlier_calls_saw(watched: Desk, policy: bool) -> None:
    watched.seed({"a": "x"})
    calls = [
        ToolCall("1", "read", {"file_path": "a"}),
        ToolCall("2", "edit", {"file_path": "a", "old_string": "x", "new_string": "y"}),
    ]
    edit = {"file_path": "a", "old_string": "y", "new_string": "z"}
    calls += [ToolCall(str(number), "edit", edit | {"replace_all": True}) for number in (3, 4)]
    if policy:
        watched.runtime.pipeline.guard(lambda call: None)
    results = await watched.tools.execute(calls)
    assert [result.success for result in results] == [True, True, True, False]
    assert isinstance(results[3], ToolFailure)
    assert "is not in it" in results[3].error


# -------------------------------------------------------------------- any order of all of it

Step = tuple[Literal["read", "write", "edit", "other", "remove", "anew"], str, str, str]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "edit", "other", "remove", "anew"]),
        st.sampled_from(["ada", "bob"]),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["x", "xy", "z"]),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(STEPS)
def test_nothing_is_lost_that_was_not_seen(steps: list[Step]) -> None:
    async def run(folder: Path) -> None:
        async with open_runtime() as runtime:
            desk = Desk(runtime)
            desk.observe()
            await desk.mount(folder)
            seen: dict[tuple[str, str], str | None] = {}
            looked: dict[str, str | None] = {"a": None, "b": None}
            """What anybody was shown last through the workspace: it refuses to write over anything else."""
            for kind, who, name, text in steps:
                path = folder / name
                before = path.read_text() if path.exists() else None
                if kind == "other":
                    path.write_text(text)
                elif kind == "remove":
                    path.unlink(missing_ok=True)
                elif kind == "anew":
                    await desk.parties[who].stop()
                    desk.parties[who] = desk.party(who)
                    seen = {place: version for place, version in seen.items() if place[0] != who}
                elif kind == "read":
                    assert await attempt(desk, "read", who, name) == ("FS_NOT_FOUND" if before is None else None)
                    seen[who, name] = looked[name] = before
                else:
                    code = await attempt(desk, kind, who, name, text)
                    after = path.read_text() if path.exists() else None
                    if code is not None:
                        assert after == before, "what was refused has changed nothing"
                    place = (who, name)
                    fresh = seen.get(place) == before == looked[name]
                    if kind == "edit" and place not in seen:
                        assert code == "FS_NOT_OBSERVED"
                    elif kind == "edit" and seen[place] is None:
                        assert code == "FS_NOT_FOUND"
                    elif not fresh:
                        assert code == "FS_STALE_VERSION"
                    elif kind == "edit":
                        assert code == (None if before is not None and "x" in before else "FS_EDIT_NOT_FOUND")
                    else:
                        assert code is None
                    if code is None:
                        assert after == (text if kind == "write" else (before or "").replace("x", text))
                        seen[place] = looked[name] = after

    with tempfile.TemporaryDirectory() as folder:
        trio.run(run, Path(folder))


async def attempt(desk: Desk, kind: str, who: str, name: str, text: str = "") -> str | None:
    """The code with which the call was refused."""
    args: dict[str, Any] = {"write": {"content": text}, "edit": {"old_string": "x", "new_string": text}}.get(kind, {})
    try:
        await desk.call(kind, who, file_path=name, **args)
    except ToolError as error:
        return error.code
    return None
