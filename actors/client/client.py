"""The client of a gateway: calls, and terminals to attach to, over one WebSocket."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from math import inf
from typing import Any, TypeVar, final

import msgspec
import trio

from greenroom.actors.client.attachment import AttachedTerminal
from greenroom.actors.client.following import FollowedRun
from greenroom.actors.client.pending import PendingCall
from greenroom.actors.client.socket import ABNORMAL, NORMAL, PROTOCOL_ERROR, TOO_BIG, UNWELCOME, FrameSocket
from greenroom.actors.client.streaming import ClientStreams, OpenedStream
from greenroom.protocol.errors import RpcError
from greenroom.protocol.forms import FormSchema, serialize_form
from greenroom.protocol.rpc import (
    ANSWER,
    ASK,
    ATTACH,
    BYE,
    CALL_TOOL,
    CANCEL,
    CANCEL_RUN,
    DETACH,
    FOLLOW_RUN,
    HELLO,
    LIST_RUNS,
    LIST_TERMINALS,
    LIST_TOOLS,
    NOTIFICATIONS,
    OWN_NAMESPACES,
    PENDING,
    RELEASE,
    RESUME_RUN,
    SHOW_RUN,
    SIGNAL_RUN,
    START_RUN,
    TREE,
    WITHDRAW,
    AnswerForm,
    AskTerminal,
    Attachment,
    AttachTerminal,
    Bye,
    CallTool,
    CancelCall,
    CancelRun,
    DetachTerminal,
    Followed,
    Hello,
    Keyed,
    ListRuns,
    ListTerminals,
    ListTools,
    Method,
    ReadPending,
    ReadTree,
    ReleaseAsk,
    RequestId,
    ResumeRun,
    RunHappened,
    ShowRun,
    SignalRun,
    StartRun,
    StreamEvent,
    TerminalEvent,
    TerminalInfo,
    Welcome,
    WithdrawForm,
    frames,
)
from greenroom.protocol.runs import RunInfo, RunPicture
from greenroom.protocol.terminals import AnswerResult, PendingForm
from greenroom.protocol.tools import ToolDefinition, ToolResult
from greenroom.protocol.tree import TreeSnapshot
from greenroom.protocol.workflows import Status

__all__ = ["Client"]

R = TypeVar("R")

logger = logging.getLogger("greenroom.client")


@final
class Client:
    """A connection to a gateway, made by `connect`. Any number of tasks may call at the same time.

    No call has a deadline of its own; put one around it with `trio.fail_after`. A cancelled call is cancelled at the
    server too.

    A lost connection is made anew, and calls wait for it. What may change something is sent with a key, so that it is
    carried out once: when it comes again, the server gives the outcome that it has recorded, or lets the call go on. If
    it knows nothing of it any more, the call fails with RpcError OUTCOME: it may have happened. Attached terminals are
    attached again. When the client gives up, or was told not to reconnect, or a message was larger than its receiver
    takes (`code` 1009), every call under way and every later one fails with RpcError CLOSED (`code` and `reason` as the
    server told them).

    What the server refuses is raised as the error that it is there (TerminalError, TerminalDeadlock, FormError,
    ActorError), and as RpcError where it is about the call itself.
    """

    def __init__(
        self, socket: FrameSocket, redial: Callable[[], Awaitable[FrameSocket]] | None = None, id: str | None = None
    ) -> None:
        self._socket: FrameSocket | None = socket
        """None while there is no connection."""
        self._redial = redial
        """How to come by another one, however long that takes. None: there will be no other."""
        self._id = id or secrets.token_urlsafe(24)
        """What this client calls itself at the server."""
        self._visit: str | None = None
        """What the server calls the time in which it knows this client, once it has said so on this connection."""
        self._message_size: int | None = None
        """How many bytes of a message the server takes, once it has said so."""
        self._last: tuple[int, str] = (ABNORMAL, "")
        """How the last connection ended."""
        self._closing = False
        self._abandoned: dict[RequestId, PendingCall[Any]] = {}
        """Calls that were cancelled while there was no connection, so that the server does not know it yet."""
        self._calls = 0
        self._pending: dict[RequestId, PendingCall[Any]] = {}
        self._greeting: RequestId | None = None
        """The hello on the present connection, if it is not the first."""
        self._unwelcome = False
        """That hello was refused: what else comes on this connection is refused for that alone."""
        self._own: set[RequestId] = set()
        """Calls with which it takes up a new connection: the next one has others."""
        self._attached: dict[str, list[AttachedTerminal]] = {}
        self._followed: dict[RequestId, FollowedRun] = {}
        """By the calls under which their events come."""
        self._streams = ClientStreams(self)
        self._ended = False
        self._away = trio.CancelScope()
        """Around each attempt to connect anew."""

    @property
    def open(self) -> bool:
        """It has not ended for good: calls go out, now or when there is a connection again."""
        return not self._ended

    @property
    def connected(self) -> bool:
        """There is a connection, as far as this side knows."""
        return self._socket is not None and not self._ended

    # ---------------------------------------------------------------- calling

    async def call(self, method: str, params: object, result_type: type[R]) -> R:
        """Call any method: `params` is a struct or a mapping, the result is read as `result_type`.

        So are called the remote methods of the program behind the gateway: `call("release/start", {"version": "4.2"},
        Release)`, with RemoteError for what they refuse. Each is done once, also over a lost connection.

        Raises what the server refuses it with, and RpcError: CLOSED, or PARAMS if the params cannot be sent as JSON or
        are more than the server takes, or RESULT if the answer is no `result_type`. Cancelled: the call is cancelled at
        the server, which may have carried it out already.
        """
        decoder: msgspec.json.Decoder[R] = msgspec.json.Decoder(result_type)
        return await self._call(method, params, decoder.decode)

    async def _invoke(self, method: Method[Any, R], params: object) -> R:
        return await self._call(method.name, params, method.read)

    def _post(
        self,
        method: str,
        params: object,
        read: Callable[[msgspec.Raw], R],
        answered: Callable[[R], object] | None = None,
    ) -> tuple[RequestId, PendingCall[R]]:
        """Send a request, now or when there is a connection again; whoever takes it away has it cancelled."""
        if self._ended:
            raise self._closed()
        self._calls += 1
        id = self._calls
        # Whatever is not the gateway's own may change something.
        keyed = isinstance(params, Keyed) or method.partition("/")[0] not in OWN_NAMESPACES
        try:
            if keyed and self._redial is not None:
                params = _changed(params, key=secrets.token_urlsafe(16), visit=self._visit)
            frame = frames.request(id, method, params)
        except (TypeError, ValueError, RecursionError) as problem:
            raise RpcError(
                "PARAMS", f"The params of {method} are no JSON values: {problem}.", {"method": method}
            ) from problem
        if self._message_size is not None and len(frame) > self._message_size:
            raise RpcError(
                "PARAMS",
                f"This call of {method} takes {len(frame)} bytes, and the gateway takes {self._message_size}.",
                {"method": method, "size": len(frame), "most": self._message_size},
            )
        pending: PendingCall[R] = PendingCall(method, params, read, answered, keyed=keyed)
        self._pending[id] = pending
        if self._socket is not None:
            self._socket.send(frame)
            pending.sent = True
        return id, pending

    async def _call(
        self,
        method: str,
        params: object,
        read: Callable[[msgspec.Raw], R],
        answered: Callable[[R], object] | None = None,
    ) -> R:
        await trio.lowlevel.checkpoint_if_cancelled()
        id, pending = self._post(method, params, read, answered)
        try:
            await pending.settled.wait()
        finally:
            if self._pending.pop(id, None) is not None:
                if self._socket is not None:
                    self.notify(CANCEL, CancelCall(id=id))
                elif pending.keyed and pending.sent:
                    self._abandoned[id] = pending
        return pending.result()

    # ---------------------------------------------------------------- terminals

    async def terminals(self) -> tuple[TerminalInfo, ...]:
        """Which terminals there are."""
        return (await self._invoke(LIST_TERMINALS, ListTerminals())).terminals

    async def pending(self, terminal: str | None = None) -> tuple[PendingForm, ...]:
        """The forms that are parked now, at one terminal or at all. Raises TerminalError TARGET."""
        return (await self._invoke(PENDING, ReadPending(terminal=terminal))).pending

    async def ask(
        self,
        to: str,
        schema: FormSchema | Mapping[str, Any],
        *,
        from_: str | None = None,
        timeout: float | msgspec.UnsetType | None = msgspec.UNSET,
        durable: str | None = None,
    ) -> dict[str, Any]:
        """Ask a terminal a form and wait for its values. `from_` is the name in which it is asked.

        `timeout` is in seconds, None for no limit; where it is not given, the terminal's own holds. Custom rules cannot
        cross: they are left out. Raises TerminalError (TARGET, LIMIT, EXPIRE), TerminalDeadlock, and FormError: SCHEMA,
        or ABANDONED with the `reason` if nobody answered. Cancelled: the form is withdrawn.

        With `durable`, a name for this question that the client chooses, form and answer are recorded and outlive the
        server: asking the same again with it waits on or gives the recorded answer, until `release`. It is this
        client's own, so one that is to find it after its own restart connects with the same `id`. Cancelled, such an
        ask stays where it is. Raises TerminalError DURABLE (there is no journal; or `fields` that cannot be recorded)
        and TAKEN (it names another question), and JournalError if it cannot be recorded.
        """
        document = serialize_form(schema) if isinstance(schema, FormSchema) else dict(schema)
        params = AskTerminal(
            to=to,
            schema=document,
            from_=from_,
            timeout=_milliseconds(timeout) if isinstance(timeout, int | float) else timeout,
            durable=durable,
        )
        return (await self._invoke(ASK, params)).values

    async def answer(self, terminal: str, id: str, values: Mapping[str, Any]) -> AnswerResult:
        """Answer a form: all of the values are accepted, or the form stays as it is and the result says why."""
        return await self._invoke(ANSWER, AnswerForm(terminal=terminal, id=id, values=dict(values)))

    async def release(self, durable: str) -> bool:
        """Forget what this client asked with that `durable`, and its answer; withdraw it if it is still pending.

        False: there is no such ask. Raises TerminalError DURABLE, and JournalError: it is not forgotten then.
        """
        return (await self._invoke(RELEASE, ReleaseAsk(durable=durable))).released

    async def withdraw(self, terminal: str, id: str) -> bool:
        """Take a form back in its asker's name. False: it is not pending. Raises TerminalError TARGET."""
        return (await self._invoke(WITHDRAW, WithdrawForm(terminal=terminal, id=id))).withdrawn

    @asynccontextmanager
    async def attach(self, name: str, *, buffer: int = 1024) -> AsyncGenerator[AttachedTerminal, None]:
        """See what is pending at a terminal and what happens there, for the length of the block.

        `buffer` is how many events may wait to be taken. Raises TerminalError TARGET, naming the terminals there are.
        """
        terminal = AttachedTerminal(self, name, buffer)
        self._attached.setdefault(name, []).append(terminal)
        try:
            await self._call(ATTACH.name, AttachTerminal(terminal=name), ATTACH.read, terminal.begin)
            await terminal.wait_whole()
            yield terminal
        finally:
            terminal.end(None)
            others = self._attached[name]
            others.remove(terminal)
            if not others:
                del self._attached[name]
                self.notify(DETACH, DetachTerminal(terminal=name))

    # ---------------------------------------------------------------- runs of workflows

    async def start_run(self, definition: Mapping[str, Any]) -> RunInfo:
        """Start a workflow, and do not wait for it; the server has to know the behaviours that its tasks name.

        The same definition under the same id is the same run. Raises WorkflowError: TRANSITION (the id is another
        definition's, or a behaviour is not known), MUTATION and RESTORE (it is no definition). Cancelled: it was
        started or not, and a further call tells.
        """
        return await self._invoke(START_RUN, StartRun(definition=dict(definition)))

    async def runs(self, *, status: Iterable[Status] | None = None) -> tuple[RunInfo, ...]:
        """Which runs there are, stored ones included: all, or those of these statuses."""
        return (await self._invoke(LIST_RUNS, ListRuns(status=None if status is None else tuple(status)))).runs

    async def show_run(self, id: str) -> RunPicture:
        """A run as it stands, and whom it waits for. Raises WorkflowError UNKNOWN."""
        return await self._invoke(SHOW_RUN, ShowRun(run=id))

    async def resume_run(self, id: str) -> RunInfo:
        """Take up a run that was cut off or suspended. Raises WorkflowError UNKNOWN, or RESTORE if it cannot be."""
        return await self._invoke(RESUME_RUN, ResumeRun(run=id))

    async def cancel_run(self, id: str) -> RunInfo:
        """Stop a run; nothing of it is left when this returns. Raises WorkflowError UNKNOWN or TRANSITION."""
        return await self._invoke(CANCEL_RUN, CancelRun(run=id))

    async def signal_run(self, id: str, name: str, value: Any = None) -> None:
        """Send a signal, any JSON, to the tasks of a run; stored on return. Raises WorkflowError UNKNOWN, TRANSITION.

        Cancelled: it was sent or not.
        """
        await self._invoke(SIGNAL_RUN, SignalRun(run=id, name=name, value=value))

    @asynccontextmanager
    async def follow_run(self, id: str, *, after: int = 0, buffer: int = 1024) -> AsyncGenerator[FollowedRun, None]:
        """What happened in a run behind event number `after`, and happens, for the length of the block.

        Iterating ends when the run is over or suspended. It raises WorkflowError UNKNOWN, and GAP if events behind
        `after` are not kept any more.
        """
        await trio.lowlevel.checkpoint()
        followed = FollowedRun(self, id, after, buffer)
        try:
            yield followed
        finally:
            followed.end()

    def follow(self, followed: FollowedRun) -> tuple[RequestId, PendingCall[Followed]]:
        """Let the server tell of a run. Raises RpcError CLOSED. Called by `FollowedRun`."""
        id, pending = self._post(FOLLOW_RUN.name, followed.params(), FOLLOW_RUN.read)
        self._followed[id] = followed

        def ended() -> None:
            self._followed.pop(id, None)
            followed.ring()

        pending.ended = ended
        return id, pending

    def unfollow(self, id: RequestId) -> None:
        """Let the server tell no more. Called by `FollowedRun`."""
        self._followed.pop(id, None)
        self.drop(id)

    # ---------------------------------------------------------------- streams of remote services

    def open_stream(
        self, name: str, args: Mapping[str, Any], item_type: type[R], *, buffer: int = 1024
    ) -> AbstractAsyncContextManager[OpenedStream[R]]:
        """The stream `<namespace>/<name>` of a remote service, for the length of the block; see `OpenedStream`.

        Its items are read as `item_type`; `buffer` is how many may wait to be taken. Entering raises what the server
        refuses the stream with, and RpcError CLOSED. Leaving the block closes it, however that is left.
        """
        return self._streams.open(name, args, item_type, buffer)

    def post(self, method: Method[Any, R], params: object) -> tuple[RequestId, PendingCall[R]]:
        """Send a request whose answer others wait for. Raises RpcError CLOSED and PARAMS. Called by
        `ClientStreams`."""
        return self._post(method.name, params, method.read)

    def drop(self, id: RequestId) -> None:
        """Take such a request back, if it is not answered yet. Called by what has sent it."""
        if self._pending.pop(id, None) is not None:
            self.notify(CANCEL, CancelCall(id=id))

    def notify(self, method: Method[Any, Any], params: object) -> None:
        """Send what is not answered, if there is a connection. Called by `ClientStreams`."""
        if self._socket is not None:
            self._socket.send(frames.request(None, method.name, params))

    # ---------------------------------------------------------------- tools and the tree

    async def tools(self) -> tuple[ToolDefinition, ...]:
        """Which tools can be called."""
        return (await self._invoke(LIST_TOOLS, ListTools())).tools

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool; how it went, a failure included, is the result."""
        return await self._invoke(CALL_TOOL, CallTool(name=name, arguments=dict(arguments)))

    async def tree(self) -> TreeSnapshot:
        """Every actor of the runtime, and who waits for whom."""
        return await self._invoke(TREE, ReadTree())

    # ---------------------------------------------------------------- the connection

    def close(self) -> None:
        """Begin to end for good: what was sent before still arrives. Leaving the block of `connect` does it."""
        self._closing = True
        self._away.cancel()
        if self._socket is not None:
            self._socket.end(NORMAL)

    async def run(self) -> None:
        """Serve one connection after another; in the end everything that waits fails. Called once, by `connect`."""
        try:
            await self._serve()
            while self._redial is not None and not self._closing and self._last[0] != TOO_BIG:
                with trio.CancelScope() as self._away:
                    self._socket = await self._redial()
                if self._socket is None:
                    return
                self._come_back(self._socket)
                await self._serve()
        except RpcError as error:  # it was refused, or it has tried for long enough
            logger.warning("%s", error.message)
        finally:
            self._fail_all()

    async def _serve(self) -> None:
        socket = self._socket
        if socket is None:
            return
        try:
            async with trio.open_nursery() as nursery:
                socket.start(nursery)
                await socket.read(self._receive)
                nursery.cancel_scope.cancel()
        finally:
            self._socket = self._visit = None
            self._streams.lose()
            self._last = socket.code or ABNORMAL, socket.reason
            if self._closing or self._redial is None:
                self._fail_all()
            for_good = self._redial is not None and socket.code in (None, NORMAL)  # cancelled, or closed
            await socket.close([frames.request(None, BYE.name, Bye())] if for_good else ())

    async def hello(self) -> None:
        """Let the server know which client this is. Called by `connect`, before anything else is sent."""
        await self._call(HELLO.name, Hello(client=self._id), HELLO.read, self._be_welcome)

    def _be_welcome(self, welcome: Welcome) -> None:
        self._visit, self._message_size = welcome.visit, welcome.message_size

    def _come_back(self, socket: FrameSocket) -> None:
        """Take up everything on a new connection: who this is, what it looks at, and what it waits for."""
        logger.info("The connection to the gateway is back.")
        for id in self._own:
            self._pending.pop(id, None)
        self._calls += 1
        hello, greeting = self._calls, Hello(client=self._id)
        self._greeting, self._unwelcome = hello, False
        self._own = {hello}
        socket.send(frames.request(hello, HELLO.name, greeting))
        for name, terminals in self._attached.items():
            self._calls += 1
            again = [terminal for terminal in terminals if terminal.begun]
            if again:
                call = PendingCall(ATTACH.name, AttachTerminal(terminal=name), ATTACH.read, _each(again))
                self._pending[self._calls] = call
                self._own.add(self._calls)
        abandoned, self._abandoned = self._abandoned, {}
        for id, pending in (*self._pending.items(), *abandoned.items()):
            params = pending.params
            if pending.keyed and pending.sent:
                params = _changed(params, again=True)
            elif id in self._followed:
                params = self._followed[id].params()
            socket.send(frames.request(id, pending.method, params))
            pending.sent = True
        for id in abandoned:
            self.notify(CANCEL, CancelCall(id=id))
        self._pending[hello] = PendingCall(HELLO.name, greeting, HELLO.read, self._be_welcome)

    def _receive(self, text: str | bytes) -> None:
        try:
            messages = frames.read_messages(text if isinstance(text, str) else "")
        except RpcError as error:
            logger.warning("%s", error.message)
            if self._socket is not None:
                self._socket.end(PROTOCOL_ERROR, "no JSON-RPC")
            return
        for message in messages:
            if self._unwelcome:
                return
            if message.method:
                self._hear(message)
            elif message.id is not None and message.id == self._greeting and message.error is not msgspec.UNSET:
                self._turn_away(message.error.message)
            elif message.id is None and not isinstance(message.error, msgspec.UnsetType):
                logger.warning("The gateway could not read a message: %s", message.error.message)
            elif message.id is not None and (pending := self._pending.pop(message.id, None)) is not None:
                pending.settle(message)

    def _turn_away(self, reason: str) -> None:
        """The server does not take this client now, as when it is just forgetting it: try again with all that waits."""
        logger.info("The gateway takes this client later: %s", reason)
        self._unwelcome = True
        if self._socket is not None:
            self._socket.end(UNWELCOME, "the hello was refused")

    def _hear(self, message: frames.Message) -> None:
        notification = NOTIFICATIONS.get(message.method)
        if notification is None:
            return  # of a later version of the gateway
        try:
            params = msgspec.json.decode(message.params, type=notification.params)
        except msgspec.DecodeError:
            logger.warning("A notification %s has another shape than this client knows; it is dropped.", message.method)
            return
        if isinstance(params, StreamEvent):
            self._streams.hear(params)
        elif isinstance(params, TerminalEvent):
            for terminal in self._attached.get(params.terminal, ()):
                terminal.take(params)
        elif isinstance(params, RunHappened) and params.call in self._followed:
            self._followed[params.call].take(params.event)

    def _fail_all(self) -> None:
        """Every call under way, and every later one, ends with CLOSED, and so do the events of attached terminals."""
        self._ended = True
        pending, self._pending = self._pending, {}
        for call in pending.values():
            call.fail(self._closed())
        for terminals in self._attached.values():
            for terminal in terminals:
                terminal.end(self._closed())

    def _closed(self) -> RpcError:
        code, reason = self._last
        if code == TOO_BIG:
            message = f"A message was larger than its receiver takes, and would be so again: {reason or code}."
            return RpcError("CLOSED", message, {"code": code, "reason": reason})
        why = f"code {code}" + (f", {reason}" if reason else "")
        message = f"The connection to the gateway has ended ({why}); connect again."
        return RpcError("CLOSED", message, {"code": code, "reason": reason})


def _changed(params: object, **members: object) -> object:
    """The params of a call with a key, with these members. Raises TypeError for what is no object."""
    if isinstance(params, Keyed):
        return msgspec.structs.replace(params, **members)
    plain: Any = msgspec.to_builtins(params)
    return {**plain, **members}


def _each(terminals: list[AttachedTerminal]) -> Callable[[Attachment], None]:
    def resume(attachment: Attachment) -> None:
        for terminal in terminals:
            terminal.resume(attachment)

    return resume


def _milliseconds(seconds: float) -> float | None:
    if not seconds >= 0:
        raise ValueError(f"A timeout is seconds from 0 on, or None for no limit, not {seconds}")
    return None if seconds == inf else seconds * 1000
