"""The tree of actors and its waits, drawn for a terminal."""

from __future__ import annotations

from rich.text import Text
from rich.tree import Tree

from greenroom.protocol.forms import display_line
from greenroom.protocol.tree import ActorSnapshot, TreeSnapshot

__all__ = ["draw", "plain"]

_COLORS = {"running": "green", "restarting": "yellow", "stopping": "yellow", "starting": "cyan", "ended": "red"}


def draw(snapshot: TreeSnapshot) -> Tree:
    """Every actor by its place, with its state where that is not `running`; then who waits for whom."""
    drawing = Tree(_label(snapshot.root), guide_style="dim")
    _grow(drawing, snapshot.root)
    for wait in snapshot.waits:
        waiters = plain(" as ".join(wait.from_)) if wait.from_ else "somebody outside"
        drawing.add(
            Text.assemble((waiters, "bold"), " waits for ", (plain(wait.to), "bold"), (f"  {wait.message}", "dim"))
        )
    return drawing


def _grow(drawing: Tree, actor: ActorSnapshot) -> None:
    for child in actor.children:
        _grow(drawing.add(_label(child)), child)


def _label(actor: ActorSnapshot) -> Text:
    name = plain(actor.path.rpartition("/")[2] or "/")
    label = Text.assemble((name, _COLORS.get(actor.state, "default")), ("  " + actor.kind, "dim"))
    if actor.state != "running":
        label.append(f"  {actor.state}", _COLORS.get(actor.state, "default"))
    if actor.operates is not None:
        label.append(f"  answers for {plain(actor.operates)}")
    if actor.mailbox:
        label.append(f"  {actor.mailbox} in its mailbox", "yellow")
    if actor.restarts:
        label.append(f"  restarted {actor.restarts} times", "yellow")
    return label


def plain(text: str) -> str:
    """Text that came from elsewhere, in one line, without anything that could steer a terminal."""
    return display_line(text)
