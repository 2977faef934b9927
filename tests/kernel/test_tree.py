"""The tree: where actors are spawned and found, how it looks, and how its block ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from greenroom.protocol.errors import ActorError
from greenroom.protocol.tree import ActorSnapshot, TreeSnapshot, WaitSnapshot
from greenroom.runtime.context import CURRENT
from greenroom.runtime.ref import Ref
from greenroom.runtime.tree import ActorEnded, ActorStarted, Tree, run_tree
from tests.kernel.cast import Call, Echo, Keep, Note, Player, Prop, Run, forever, quiet


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


# -------------------------------------------------------------------- spawning and finding


async def test_an_actor_lives_at_its_path_and_its_children_beneath() -> None:
    async with run_tree() as tree:
        top = tree.spawn(Player(), "a")
        child: Ref = await top.ask(Call(lambda me: me.spawn(Prop(), "b")))
        grandchild = tree.spawn(Prop, "c", parent=tree.spawn(Player(), "d", parent=top))
        assert (top.path, child.path, grandchild.path) == ("/a", "/a/b", "/a/d/c")
        assert tree.find("/a/d/c") is grandchild
        assert tree.find("a/b") is child
        assert tree.find("/") is tree.root
        assert child.actor.tree is tree


async def test_a_child_can_be_spawned_before_its_parent_has_run() -> None:
    async with run_tree() as tree:
        top = tree.spawn(Player(), "a")
        middle = tree.spawn(Player(), "b", parent=top)
        leaf = tree.spawn(Prop(), "c", parent=middle)
        assert await leaf.ask(Echo(1)) == 1
        await top.stop()
        assert leaf.state == "ended"


async def test_a_child_whose_parent_fails_before_it_runs_ends_with_it() -> None:
    async with run_tree() as tree:
        top = tree.spawn(Player(), "a")
        leaf = tree.spawn(Prop(), "b", parent=top)
        top.actor.fail(ValueError())
        with pytest.raises(ActorError, match="/a has stopped"):
            tree.spawn(Prop(), "c", parent=top)
        assert await leaf.join() == "stopped"
        assert await top.join() == "failed"


async def test_a_place_is_taken_once() -> None:
    async with run_tree() as tree:
        first = tree.spawn(Player(), "a")
        with pytest.raises(ActorError, match="an actor at /a already") as error:
            tree.spawn(Prop(), "a")
        assert (error.value.code, error.value.context) == ("EXISTS", {"path": "/a"})
        await first.stop()
        assert await tree.spawn(Prop(), "a").ask(Echo(1)) == 1


async def test_the_place_is_free_when_the_stop_returns_and_not_before() -> None:
    async with run_tree() as tree:
        first = tree.spawn(Player(), "a")
        await quiet()
        first.stop_soon()
        with pytest.raises(ActorError) as error:
            tree.spawn(Prop(), "a")
        assert error.value.code == "EXISTS"
        await first.wait_ended()
        tree.spawn(Prop(), "a")


@pytest.mark.parametrize("name", ["", "a/b", "/", "a\ud800"])
async def test_a_name_is_one_segment_of_a_path(name: str) -> None:
    async with run_tree() as tree:
        with pytest.raises(ValueError, match="one segment of its path"):
            tree.spawn(Prop(), name)
        assert tree.snapshot().root.children == ()


@pytest.mark.parametrize("name", ["..", "50%", "ü😀", "a b", "a#b", "{x}"])
async def test_any_other_name_will_do(name: str) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Prop(), name)
        assert tree.find(f"/{name}") is ref
        await ref.stop()


async def test_an_actor_is_spawned_once() -> None:
    async with run_tree() as tree:
        actor = Player()
        ref = tree.spawn(actor, "a")
        with pytest.raises(ValueError, match="Player at /a was spawned before"):
            tree.spawn(actor, "b")
        assert (actor.ref, tree.root.children) == (ref, {"a": ref})


async def test_a_factory_that_raises_spawns_nothing() -> None:
    async with run_tree() as tree:
        with pytest.raises(ZeroDivisionError):
            tree.spawn(lambda: Player(1 / 0), "a")  # type: ignore[arg-type]  # it never gets that far
        assert tree.snapshot().root.children == ()


@pytest.mark.parametrize("parent", ["a leaf", "stopping", "ended"])
async def test_nothing_is_spawned_beneath_what_does_not_run(parent: str) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Prop() if parent == "a leaf" else Player(), "a")
        await quiet()
        if parent == "stopping":
            ref.stop_soon()
        elif parent == "ended":
            await ref.stop()
        with pytest.raises(ActorError) as error:
            tree.spawn(Prop(), "b", parent=ref)
        assert error.value.code == "STOPPED"


async def test_a_path_where_nobody_is_names_who_is_there() -> None:
    async with run_tree() as tree:
        for name in ("b", "c"):
            tree.spawn(
                Prop(), name, parent=tree.root.children["a"] if tree.root.children else tree.spawn(Player(), "a")
            )
        with pytest.raises(ActorError, match="no actor at /a/x; beneath /a there are b, c") as error:
            tree.find("/a/x")
        assert (error.value.code, error.value.context) == ("UNKNOWN", {"path": "/a/x", "known": ["b", "c"]})
        with pytest.raises(ActorError, match="beneath /a/b there are none"):
            tree.find("/a/b/c")


async def test_starts_and_ends_are_announced() -> None:
    async with run_tree() as tree:
        seen: list[Any] = []
        for event in ("actor/started", "actor/ended"):
            tree.bus.on(event, seen.append)
        ref = tree.spawn(Player(), "a")
        assert seen == []
        await quiet()
        assert seen == [ActorStarted("/a")]
        await ref.stop(reason="why")
        assert seen == [ActorStarted("/a"), ActorEnded("/a", "why")]
        ref = tree.spawn(Player(), "b")
        await ref.stop()
        assert seen[2:] == [ActorEnded("/b", "stopped")], "what was stopped before it ran has not started"


# -------------------------------------------------------------------- looking


async def test_a_snapshot_shows_states_depths_waits_and_deadlines(autojump_clock: trio.testing.MockClock) -> None:
    class Thing:
        armed = 0

    async with run_tree() as tree:
        top = tree.spawn(Player(), "a", capacity=1)
        other = tree.spawn(Prop(), "b")
        child = tree.spawn(Player(forever), "c", parent=top)
        tree.deadlines.arm(trio.current_time() + 30, other, Thing())
        await quiet()
        async with trio.open_nursery() as nursery:
            top.tell(Run(lambda _: other.ask(Keep())))
            await quiet()
            nursery.start_soon(other.ask, Keep())
            top.tell(Note("queued"))

            async def send_as_the_child() -> None:
                CURRENT.set(child.work)
                await top.send(Note("in line"))

            nursery.start_soon(send_as_the_child)
            nursery.start_soon(child.join)
            await quiet()
            seen = tree.snapshot()
            nursery.cancel_scope.cancel()
        assert seen == TreeSnapshot(
            root=ActorSnapshot(
                path="/",
                kind="root",
                state="running",
                children=(
                    ActorSnapshot(
                        path="/a",
                        kind="player",
                        state="running",
                        mailbox=2,
                        children=(ActorSnapshot(path="/a/c", kind="player", state="starting"),),
                    ),
                    ActorSnapshot(path="/b", kind="prop", state="running"),
                ),
            ),
            waits=(
                WaitSnapshot(from_=("/a/c",), to="/a", message="send"),
                WaitSnapshot(from_=(), to="/a/c", message="join"),
                WaitSnapshot(from_=("/a",), to="/b", message="Keep"),
                WaitSnapshot(from_=(), to="/b", message="Keep"),
            ),
            deadlines=1,
            next_due=seen.next_due,
        )
        assert seen.next_due == 30.0
        assert msgspec.json.decode(msgspec.json.encode(seen), type=TreeSnapshot) == seen
        with pytest.raises(AttributeError):
            seen.deadlines = 2  # type: ignore[misc]  # it cannot be changed
        assert [wait.message for wait in tree.snapshot().waits] == ["Keep"]


async def test_taking_a_snapshot_is_no_checkpoint() -> None:
    async with run_tree() as tree:
        tree.spawn(Player(), "a")
        with trio.testing.assert_no_checkpoints():
            tree.snapshot()


# -------------------------------------------------------------------- the block


async def test_leaving_the_block_stops_everything_the_newest_first() -> None:
    before = tasks()
    ends: list[str] = []
    async with run_tree() as tree:
        tree.bus.on("actor/ended", lambda event: ends.append(f"{event.path} {event.reason}"))
        top = tree.spawn(Player(), "a")
        tree.spawn(Prop(), "b", parent=top)
        tree.spawn(Prop(), "c")
        top.tell(Run(forever))
        await quiet()
    assert ends == ["/c stopped", "/a/b stopped", "/a stopped"]
    assert tasks() == before
    assert (tree.root.state, tree.root.reason) == ("ended", "ended")
    with pytest.raises(ActorError, match="has stopped"):
        tree.spawn(Prop(), "late")


async def test_nothing_new_is_spawned_while_the_block_ends() -> None:
    codes: list[str] = []

    class Stubborn(Player):
        def on_end(self, reason: str) -> None:
            with pytest.raises(ActorError) as error:
                self.tree.spawn(Stubborn(), f"another {len(codes)}")
            codes.append(error.value.code)

    async with run_tree() as tree:
        tree.spawn(Stubborn(), "a")
        await quiet()
    assert codes == ["STOPPED"]
    assert tree.root.children is None


@pytest.mark.parametrize("error", [ValueError("mine"), ExceptionGroup("mine", [ValueError()]), KeyboardInterrupt()])
async def test_what_the_block_raises_comes_out_as_it_is(error: BaseException) -> None:
    before = tasks()
    ends: list[str] = []

    async def block() -> None:
        async with run_tree() as tree:
            tree.bus.on("actor/ended", lambda event: ends.append(event.reason))
            tree.spawn(Player(), "a").tell(Run(forever))
            await quiet()
            raise error

    with pytest.raises(type(error)) as raised:
        await block()
    assert raised.value is error
    assert ends == ["cancelled"]
    assert tasks() == before


async def test_a_cancelled_block_is_cancelled() -> None:
    actor = Player()
    with trio.CancelScope() as scope:
        async with run_tree() as tree:
            tree.spawn(actor, "a")
            await quiet()
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert (actor.ref.state, actor.ends) == ("ended", ["cancelled"])


def test_a_cancellation_of_the_tree_itself_does_not_leave_its_block() -> None:
    """Run by hand: a cancellation that leaked would end a test as if it had passed."""

    async def main() -> str:
        async with run_tree() as tree:
            tree.spawn(Player(), "a")
            await quiet()
            assert tree.root.life.nursery is not None
            tree.root.life.nursery.cancel_scope.cancel()
            await trio.sleep_forever()
        return "went on"

    assert trio.run(main) == "went on"


async def test_whoever_waits_for_the_root_waits_for_the_block() -> None:
    order: list[str] = []

    async def join(tree: Tree) -> None:
        order.append(await tree.root.join())

    async with trio.open_nursery() as nursery:
        async with run_tree() as tree:
            nursery.start_soon(join, tree)
            await quiet()
            order.append("in the block")
        await quiet()
    assert order == ["in the block", "ended"]
