"""What each method does. A plain handler is done in one step; an async one may wait, and is cancelled with its call."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from msgspec import UnsetType

from greenroom.actors.gateway.handlers import Handlers, denied, grants_of
from greenroom.actors.gateway.runs import RUN_HANDLERS
from greenroom.actors.gateway.streams import STREAM_HANDLERS
from greenroom.actors.terminal import Terminal
from greenroom.protocol.errors import RpcError, TerminalError
from greenroom.protocol.forms import Form, parse_form
from greenroom.protocol.rpc import (
    ANSWER,
    ASK,
    ATTACH,
    BYE,
    CALL_TOOL,
    CANCEL,
    DETACH,
    HELLO,
    LIST_TERMINALS,
    LIST_TOOLS,
    METHODS,
    PENDING,
    RELEASE,
    TREE,
    WITHDRAW,
    AnswerForm,
    AskTerminal,
    Attachment,
    AttachTerminal,
    Bye,
    CallTool,
    CancelCall,
    Cancellation,
    Detachment,
    DetachTerminal,
    Farewell,
    Hello,
    ListTerminals,
    ListTools,
    PendingList,
    ReadPending,
    ReadTree,
    ReleaseAsk,
    ReleasedAsk,
    SubmittedValues,
    TerminalInfo,
    TerminalList,
    ToolList,
    Welcome,
    Withdrawal,
    WithdrawForm,
)
from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal, AnswerResult
from greenroom.protocol.tools import ToolCall, ToolFailure, ToolResult
from greenroom.protocol.tree import TreeSnapshot

if TYPE_CHECKING:
    from greenroom.actors.gateway.calls import Call

__all__ = ["HANDLERS", "no_method"]

_NAMED: Final = 20
"""How many known names a message spells out; its context has them all."""


HANDLERS: Final = Handlers()
"""By the name of the method; there is one for each of METHODS."""


# -------------------------------------------------------------------- terminals


@HANDLERS.serves(LIST_TERMINALS)
def _list_terminals(call: Call, params: ListTerminals) -> TerminalList:
    terminals = call.session.services.terminals
    known = [terminal for name in _known(call) if (terminal := terminals.terminal(name)) is not None]
    return TerminalList(
        terminals=tuple(
            TerminalInfo(name=terminal.name, pending=terminal.count, operated=terminal.operator is not None)
            for terminal in known
        )
    )


@HANDLERS.serves(ATTACH)
def _attach(call: Call, params: AttachTerminal) -> Attachment:
    return call.session.attach(_terminal(call, params.terminal, grants_of(call).may_attach, "attach"))


@HANDLERS.serves(DETACH)
def _detach(call: Call, params: DetachTerminal) -> Detachment:
    return Detachment(detached=call.session.attachments.detach(params.terminal))


@HANDLERS.serves(PENDING)
def _pending(call: Call, params: ReadPending) -> PendingList:
    may_attach, terminals = grants_of(call).may_attach, call.session.services.terminals
    if params.terminal is not None:
        return PendingList(pending=tuple(_terminal(call, params.terminal, may_attach, "attach").pending()))
    names = filter(may_attach, terminals.terminals())
    return PendingList(pending=tuple(record for name in names for record in terminals.pending(name)))


@HANDLERS.serves(ASK)
async def _ask(call: Call, params: AskTerminal) -> SubmittedValues:
    _terminal(call, params.to, grants_of(call).may_ask, "ask")
    if not grants_of(call).may_ask_as(params.from_):
        raise denied(f"ask in the name of {params.from_}", "ask_as")
    # `parse_form` drops what only a program can mean (custom rules); where it says no more than no, `Form` says why.
    form = Form(parse_form(params.schema) or params.schema)
    timeout = params.timeout / 1000 if isinstance(params.timeout, int | float) else params.timeout
    owner = None if params.durable is None else call.session.owner()
    values = await call.session.services.terminals.ask(
        params.from_, params.to, form, timeout=timeout, key=params.durable, owner=owner
    )
    return SubmittedValues(values=values)


@HANDLERS.serves(ANSWER)
async def _answer(call: Call, params: AnswerForm) -> AnswerResult:
    terminals, name = call.session.services.terminals, params.terminal
    if not grants_of(call).may_answer(name):
        if terminals.terminal(name) is not None and grants_of(call).may_know(name):
            raise denied(f"answer the terminal {name}", "answer")
        return AnswerFailure(error=AnswerRefusal("target"))
    return await terminals.answer(name, params.id, params.values, whole=True)


@HANDLERS.serves(WITHDRAW)
async def _withdraw(call: Call, params: WithdrawForm) -> Withdrawal:
    terminal = _terminal(call, params.terminal, grants_of(call).may_know, "ask")
    record = terminal.pending(params.id)
    asker = None if record is None or isinstance(record.from_, UnsetType) else record.from_
    if record is None or not grants_of(call).may_withdraw(asker):
        return Withdrawal(withdrawn=False)
    return Withdrawal(withdrawn=await terminal.withdraw(params.id))


@HANDLERS.serves(RELEASE)
async def _release(call: Call, params: ReleaseAsk) -> ReleasedAsk:
    owner = call.session.owner()
    return ReleasedAsk(released=await call.session.services.terminals.release(params.durable, owner=owner))


def _known(call: Call) -> list[str]:
    """The terminals of which the caller may know; the others are as if they were not there."""
    return list(filter(grants_of(call).may_know, call.session.services.terminals.terminals()))


def _terminal(call: Call, name: str, may: Callable[[str], bool], grant: str) -> Terminal:
    """The terminal of that name, for what that grant lets do.

    Raises RpcError DENIED without the grant; where the caller has none at all, the terminal is as if it were not there,
    and TerminalError TARGET says so.
    """
    terminal = call.session.services.terminals.terminal(name)
    if terminal is not None and may(name):
        return terminal
    if terminal is not None and grants_of(call).may_know(name):
        raise denied(f"{grant} the terminal {name}", grant)
    known = _known(call)
    more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
    there = f"There {'is' if len(known) == 1 else 'are'} {', '.join(known[:_NAMED])}{more}." if known else ""
    raise TerminalError(
        "TARGET",
        f"There is no terminal {name}. {there or 'There is none yet.'}",
        {"to": name, "known": known},
    )


# -------------------------------------------------------------------- tools, the tree, calls


@HANDLERS.serves(LIST_TOOLS)
def _list_tools(call: Call, params: ListTools) -> ToolList:
    definitions = call.session.services.tools.definitions()
    return ToolList(tools=tuple(tool for tool in definitions if grants_of(call).may_call(tool.name)))


@HANDLERS.serves(CALL_TOOL)
async def _call_tool(call: Call, params: CallTool) -> ToolResult:
    if not grants_of(call).may_call(params.name):
        return ToolFailure(id=str(call.id), name=params.name, error=f"tool not found: {params.name}")
    wanted = ToolCall(str(call.id), params.name, params.arguments, caller=grants_of(call))
    return await call.session.services.tools.execute(wanted)


@HANDLERS.serves(TREE)
def _tree(call: Call, params: ReadTree) -> TreeSnapshot:
    if not grants_of(call).may_read_tree:
        raise denied("read the tree", "tree")
    return call.session.services.snapshot()


@HANDLERS.serves(HELLO)
def _hello(call: Call, params: Hello) -> Welcome:
    return call.session.hello(params.client)


@HANDLERS.serves(BYE)
def _bye(call: Call, params: Bye) -> Farewell:
    return call.session.bye()


@HANDLERS.serves(CANCEL)
def _cancel(call: Call, params: CancelCall) -> Cancellation:
    return Cancellation(cancelled=call.session.cancel(params.id))


HANDLERS.update(RUN_HANDLERS)
HANDLERS.update(STREAM_HANDLERS)


def no_method(name: str, remote: Iterable[str] = ()) -> RpcError:
    """What a request gets that names no method. `remote` are the remote methods that its sender may call."""
    known = [*METHODS, *remote]
    shown = name if len(name) <= 64 else f"{name[:64]}…"
    near = difflib.get_close_matches(name, known, n=1) if len(name) <= 64 else []
    hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
    return RpcError(
        "METHOD",
        f"There is no method {shown}. {hint}",
        {"method": shown, "nearest": near[0] if near else None, "known": known},
    )
