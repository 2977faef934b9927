"""A failing actor: what counts as its failure, and how far it reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from greenroom.protocol.errors import ActorError
from greenroom.runtime.actor import Actor, Leaf, handles
from greenroom.runtime.ref import Ref
from greenroom.runtime.tree import ActorFailed, Tree, run_tree
from tests.kernel.cast import Call, Do, Echo, Keep, Note, Player, Prop, Run, forever, nothing_is_left, quiet


class Broken(Exception):
    pass


def broken(*_: Any) -> Any:
    raise Broken("by itself")


async def breaks(*_: Any) -> None:
    await trio.lowlevel.checkpoint()
    broken()


def failures_of(tree: Tree) -> list[tuple[str, type[Exception], bool]]:
    """Filled as actors fail: path, type of the error, whether it begins anew."""
    failures: list[tuple[str, type[Exception], bool]] = []

    def failed(event: ActorFailed) -> None:
        failures.append((event.path, type(event.error), event.restarting))

    tree.bus.on("actor/failed", failed)
    return failures


class Fragile(Leaf):
    @handles(Note)
    def note(self, message: Note) -> None:
        broken()

    @handles(Echo)
    def echo(self, message: Echo) -> int:
        return message.value


WAYS: dict[str, tuple[Callable[[], Actor], Callable[[Ref], None]]] = {
    "a told message": (Fragile, lambda ref: ref.tell(Note(""))),
    "a told message, async": (Player, lambda ref: ref.tell(Run(breaks))),
    "its start": (lambda: Player(breaks), lambda ref: None),
    "its work": (Player, lambda ref: ref.tell(Run(_start_breaking_work))),
    "its own word": (Player, lambda ref: ref.actor.fail(Broken())),
    "its own word, a leaf": (Fragile, lambda ref: ref.actor.fail(Broken())),
}


async def _start_breaking_work(me: Player) -> None:
    me.start_soon(breaks)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("started", [False, True])
async def test_a_failed_actor_ends_is_announced_and_its_siblings_go_on(way: str, started: bool) -> None:
    make, fail = WAYS[way]
    async with run_tree() as tree:
        failures = failures_of(tree)
        sibling, ref = tree.spawn(Prop(), "sibling"), tree.spawn(make(), "a")
        if started:
            await quiet()
        fail(ref)
        assert await ref.join() == "failed"
        assert failures == [("/a", Broken, False)]
        assert await sibling.ask(Echo(1)) == 1
        assert [child.path for child in tree.snapshot().root.children] == ["/sibling"]


async def test_a_failure_is_logged_though_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    async with run_tree() as tree:
        ref = tree.spawn(Fragile(), "a")
        ref.tell(Note(""))
        await ref.join()
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("greenroom.tree", "/a failed")]
    assert caplog.records[0].exc_info is not None


async def test_a_failed_actor_takes_what_is_beneath_it_along_and_tells_its_askers() -> None:
    async with run_tree() as tree:
        child, actor = Player(), Player()
        parent = tree.spawn(actor, "a")
        await parent.ask(Call(lambda me: me.spawn(child, "child")))
        errors: list[str] = []

        async def ask(ref: Ref) -> None:
            with pytest.raises(ActorError) as error:
                await ref.ask(Keep())
            errors.append(error.value.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, parent)
            nursery.start_soon(ask, child.ref)
            await quiet()
            parent.tell(Run(breaks))
        assert errors == ["STOPPED", "STOPPED"]
        assert (child.ends, actor.ends) == (["stopped"], ["failed"])


async def test_a_failing_child_does_not_fail_its_parent() -> None:
    async with run_tree() as tree:
        parent = tree.spawn(Player(), "a")
        child: Ref = await parent.ask(Call(lambda me: me.spawn(Fragile(), "child")))
        child.tell(Note(""))
        await child.join()
        assert await parent.ask(Echo(1)) == 1


async def test_work_that_fails_cancels_the_handler_and_the_other_work() -> None:
    async with run_tree() as tree:
        seen: list[str] = []

        async def forever(who: str) -> None:
            try:
                await trio.sleep_forever()
            finally:
                seen.append(who)

        async def handler(me: Player) -> None:
            me.start_soon(forever, "work")
            me.start_soon(breaks)
            await forever("handler")

        ref = tree.spawn(Player(), "a")
        with pytest.raises(ActorError, match="has stopped"):
            await ref.ask(Do(handler))
        assert await ref.join() == "failed"
        assert sorted(seen) == ["handler", "work"]


async def test_no_message_is_taken_after_a_plain_handler_has_failed_its_actor() -> None:
    def fail(me: Player) -> None:
        me.ref.tell(Note("after"))
        me.fail(Broken())

    async with run_tree() as tree:
        actor = Player()
        ref = tree.spawn(actor, "a")
        await ref.ask(Call(fail))
        assert await ref.join() == "failed"
        assert actor.notes == []


@pytest.mark.parametrize("where", ["handler", "work", "start"])
async def test_what_is_raised_together_with_a_cancellation_is_a_failure_and_nothing_more(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A nursery that is cancelled and fails raises both in one group: the part that is cancellation must go on."""

    async def fails_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            broken()

    async def both(_: Any = None) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails_when_cancelled)
            nursery.start_soon(trio.sleep_forever)

    async def begin_work(me: Player) -> None:
        me.start_soon(both)

    async with run_tree() as tree:
        failures = failures_of(tree)
        sibling = tree.spawn(Prop(), "sibling")
        ref = tree.spawn(Player(both if where == "start" else None), "a")
        if where != "start":
            ref.tell(Run(both if where == "handler" else begin_work))
        await quiet()
        await ref.stop()
        assert failures == [("/a", ExceptionGroup, False)]
        assert ref.reason == "stopped"
        assert await sibling.ask(Echo(1)) == 1


async def test_a_failure_while_everything_is_cancelled_is_announced_and_swallows_no_cancellation() -> None:
    async def fails_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            broken()

    async def begin(me: Player) -> None:
        me.start_soon(fails_when_cancelled)
        me.start_soon(trio.sleep_forever)

    failures: list[Any] = []
    with trio.CancelScope() as scope:
        async with run_tree() as tree:
            failures = failures_of(tree)
            tree.spawn(Player(begin), "a")
            await quiet()
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert failures == [("/a", Broken, False)]


async def test_a_handler_that_raises_both_while_everything_is_cancelled_is_cancelled() -> None:
    async def fails_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            broken()

    async def both(_: Any) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails_when_cancelled)
            nursery.start_soon(trio.sleep_forever)

    failures: list[Any] = []
    actor = Player()
    with trio.CancelScope() as scope:
        async with run_tree() as tree:
            failures = failures_of(tree)
            tree.spawn(actor, "a").tell(Run(both))
            await quiet()
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert failures == [("/a", ExceptionGroup, False)]
    assert actor.ends == ["cancelled"]


async def test_a_second_failure_is_logged_and_the_first_one_counts(caplog: pytest.LogCaptureFixture) -> None:
    async def fails_too() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("while it was ending")

    async def both(me: Player) -> None:
        me.start_soon(fails_too)
        me.start_soon(breaks)

    async with run_tree() as tree:
        failures = failures_of(tree)
        ref = tree.spawn(Player(both), "a")
        await ref.join()
        assert failures == [("/a", Broken, False)]
    assert [record.getMessage() for record in caplog.records] == ["/a failed when it was ending already", "/a failed"]


async def test_an_end_is_an_end_whatever_raises_on_the_way(caplog: pytest.LogCaptureFixture) -> None:
    class Clumsy(Player):
        def on_end(self, reason: str) -> None:
            broken()

        def refusal(self, message: Any, reason: str) -> Exception:
            return broken()  # type: ignore[no-any-return]  # it raises

    async with run_tree() as tree:
        ref = tree.spawn(Clumsy(forever), "a")
        kept = tree.spawn(Clumsy(), "b")
        ended: list[str] = []
        ref.watch(broken)
        ref.watch(lambda ref: ended.append(ref.path))
        errors: list[str] = []

        async def ask(ref: Ref, message: Any) -> None:
            with pytest.raises(ActorError) as error:
                await ref.ask(message)
            errors.append(error.value.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, ref, Echo(1))
            nursery.start_soon(ask, kept, Keep())
            await quiet()
            await ref.stop()
            await kept.stop()
        assert errors == ["STOPPED", "STOPPED"]
        assert ended == ["/a"]
        assert nothing_is_left(ref, kept)
    assert len(caplog.records) == 4


async def test_an_interrupt_is_no_failure_of_an_actor_and_ends_everything() -> None:
    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    ended: list[str] = []
    with pytest.RaisesGroup(KeyboardInterrupt, flatten_subgroups=True):
        async with run_tree() as tree:
            sibling = tree.spawn(Prop(), "sibling")
            sibling.watch(lambda ref: ended.append(ref.reason or ""))
            tree.spawn(Player(), "a").tell(Run(breaks))
            tree.spawn(Player(lambda me: _call(interrupt, me)), "b")
            await trio.sleep_forever()
    assert ended == ["cancelled"]


async def _call(function: Callable[[Any], Any], me: Any) -> None:
    function(me)
