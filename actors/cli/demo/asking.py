"""Steps of the demo: a reviewer is asked over a real WebSocket, in every way that an ask can end."""

from __future__ import annotations

import json

import trio

from greenroom.actors.cli.demo.stage import Failed, Stage, check, example
from greenroom.actors.cli.drawing import draw, plain
from greenroom.actors.client import connect
from greenroom.protocol.errors import FormError, TerminalDeadlock
from greenroom.protocol.rpc import FormAnswered, FormExpired, FormPending, FormWithdrawn
from greenroom.protocol.terminals import AnswerFailure
from greenroom.protocol.tree import ActorSnapshot, TreeSnapshot

__all__ = [
    "accept",
    "ask",
    "attach",
    "circle",
    "expire",
    "refuse",
    "serve",
    "tree",
    "withdraw",
]

HASTY = {"publish": True, "reason": "ok", "notify": ["users", "press", "support"]}
"""Too short a reason, and one addressee too many."""

CONSIDERED = {
    "publish": True,
    "reason": "Read the changes and ran the checks once more.",
    "channel": "stable",
    "share": 25,
}

QUICK = {"label": "Still there?", "fields": [{"control": "confirm", "name": "there", "rule": {"required": True}}]}


async def serve(stage: Stage) -> None:
    """A server on a free port"""
    if stage.sabotaged:
        taken = await stage.runtime.serve(port=0)
        await stage.runtime.serve(port=taken.port)
    stage.gateway = await stage.runtime.serve(port=0)
    stage.say(stage.gateway.url)


async def attach(stage: Stage) -> None:
    """A reviewer attaches over a WebSocket"""
    stage.reviewer = await stage.stack.enter_async_context(connect(stage.gateway.url))
    name = "nobody" if stage.sabotaged else "reviewer"
    stage.terminal = await stage.stack.enter_async_context(stage.reviewer.attach(name))
    check(not stage.terminal.pending, "something is pending already")
    stage.say(f"terminals: {', '.join(terminal.name for terminal in await stage.reviewer.terminals())}")


async def ask(stage: Stage) -> None:
    """The release agent asks the reviewer the whole form"""
    form = json.loads(await example("release-review.json"))
    if stage.sabotaged:
        form["fields"][0]["name"] = "__proto__"  # no form can have that
    stage.ask(form)
    if stage.sabotaged:
        check(isinstance(await stage.outcome(), dict), "the form has a fault and was refused before anybody saw it")
    event: FormPending = await stage.event(FormPending)
    stage.form = event.form
    check(event.form.from_ == "release-agent", "the form does not say who asks")
    stage.say(f"{len(event.form.schema.fields)} fields: {', '.join(field.name for field in event.form.schema.fields)}")


async def refuse(stage: Stage) -> None:
    """A hasty answer is refused, field by field"""
    result = await stage.terminal.answer(stage.form.id, CONSIDERED if stage.sabotaged else HASTY)
    if not isinstance(result, AnswerFailure) or not isinstance(result.error.errors, tuple):
        raise Failed("the hasty answer was accepted")
    for error in result.error.errors:
        stage.say(f"{error.field}: {error.message}")
    check({error.field for error in result.error.errors} == {"reason", "notify"}, "other fields were refused")
    check(stage.form.id in stage.terminal.pending, "the form no longer waits")


async def circle(stage: Stage) -> None:
    """The reviewer asks the agent back: a circle, refused at once with its path"""
    if stage.sabotaged:
        # Nobody waits for the reviewer any more, so there is no circle.
        await stage.terminal.withdraw(stage.form.id)
    try:
        with trio.move_on_after(1):
            await stage.reviewer.ask("release-agent", QUICK, from_="reviewer")
    except TerminalDeadlock as error:
        stage.say(" -> ".join(error.path))
        check(error.path == ["reviewer", "release-agent", "reviewer"], "the path is another one")
        return
    raise Failed("the circle was not seen")


async def accept(stage: Stage) -> None:
    """A considered answer is accepted, and reaches the agent"""
    result = await stage.terminal.answer(stage.form.id, HASTY if stage.sabotaged else CONSIDERED)
    check(result.success, "the considered answer was refused")
    await stage.event(FormAnswered)
    values = await stage.outcome()
    if not isinstance(values, dict):
        raise Failed(f"the agent's ask ended with {values.code}")
    check(values["channel"] == "stable", "the agent has another answer than was given")
    check(values["notify"] == ["support"], "a default is missing from the answer")
    stage.say(json.dumps(values))


async def expire(stage: Stage) -> None:
    """Nobody answers the next one: it expires, and the agent learns why"""
    stage.ask(QUICK, timeout=60 if stage.sabotaged else 0.2)
    event: FormPending = await stage.event(FormPending)
    if stage.sabotaged:
        await stage.terminal.answer(event.form.id, {"there": True})
    expired: FormExpired = await stage.event(FormExpired)
    error = await stage.outcome()
    check(isinstance(error, FormError) and error.context["reason"] == "timeout", "the agent was told something else")
    check(expired.reason == "timeout", "the reviewer was told another reason")
    stage.say(str(error))


async def withdraw(stage: Stage) -> None:
    """The agent's ask is cancelled: the form leaves the reviewer's screen at once"""
    scope = stage.ask(QUICK)
    event: FormPending = await stage.event(FormPending)
    if stage.sabotaged:
        await stage.terminal.answer(event.form.id, {"there": True})
    else:
        scope.cancel()
    withdrawn: FormWithdrawn = await stage.event(FormWithdrawn)
    check(withdrawn.id == event.form.id, "another form was withdrawn")
    check(not stage.terminal.pending, "something is still pending")
    stage.say(f"{withdrawn.id} is gone")


async def tree(stage: Stage) -> None:
    """All that lives, and who waits for whom"""
    if not stage.sabotaged:
        stage.ask(QUICK)
        await stage.event(FormPending)
    snapshot = await stage.reviewer.tree()
    stage.screen.print(draw(snapshot))
    paths = {actor.path for actor in _actors(snapshot.root)}
    for path in ("/terminals/reviewer", "/terminals/release-agent", "/release-agent", "/gateway"):
        check(path in paths, f"{plain(path)} is not in the tree")
    check(_waits(snapshot), "nobody waits for the reviewer")


def _actors(actor: ActorSnapshot) -> list[ActorSnapshot]:
    return [actor, *(found for child in actor.children for found in _actors(child))]


def _waits(snapshot: TreeSnapshot) -> bool:
    return any(wait.to == "reviewer" for wait in snapshot.waits)
