"""The composition: one runtime with its terminals, runs and tools, opened for the length of an `async with` block."""

from __future__ import annotations

import gc
import os
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, final

import msgspec

from greenroom.actors.agent import AgentManager, AgentRecorder
from greenroom.actors.gateway import Access, Gateway, GatewayLimits, Mount, Services, open_gateway
from greenroom.actors.job import JobManager
from greenroom.actors.remote import RemoteServices
from greenroom.actors.services import offer_services
from greenroom.actors.session import JournalPersistence, Persistence, SessionManager
from greenroom.actors.subagent import Subagents
from greenroom.actors.terminal import (
    ASKS,
    TERMINALS,
    DurableAsks,
    JournalTerminalStore,
    TerminalManager,
    TerminalStore,
    open_durable_asks,
)
from greenroom.actors.toolbox.report import report_tool
from greenroom.actors.workflow import RUN_TABLES, JournalWorkflowStore, WorkflowManager, WorkflowRunner, WorkflowStore
from greenroom.actors.workflow.owners import owner_of_run, run_of
from greenroom.protocol.emitter import ErrorHandler
from greenroom.protocol.forms import Form, FormSchema
from greenroom.protocol.tree import TreeSnapshot
from greenroom.runtime.actor import Actor
from greenroom.runtime.bus import Bus
from greenroom.runtime.journal import Journal, open_journal
from greenroom.runtime.pipeline.pipeline import Pipeline
from greenroom.runtime.policies import Meter, SpillStore
from greenroom.runtime.ref import Ref
from greenroom.runtime.restart import Restart
from greenroom.runtime.seams import Seam
from greenroom.runtime.tools import ToolManager
from greenroom.runtime.tree import Tree, run_tree

__all__ = ["Runtime", "open_runtime"]

GC_THRESHOLDS = (50_000, 20, 100)
"""With Python's own thresholds ten thousand live asks make each new one a quarter slower, with these hardly at all."""


@final
class Runtime:
    """Everything that one program runs: the tree, the terminals, runs and agents in it, and the tools it offers."""

    def __init__(
        self,
        tree: Tree,
        terminals: TerminalManager,
        workflows: WorkflowManager,
        tools: ToolManager,
        sessions: SessionManager,
        jobs: JobManager,
        journal: Journal | None = None,
    ) -> None:
        self.tree = tree
        self.terminals = terminals
        """Who can be asked."""
        self.workflows = workflows
        """What runs through phases and tasks: `await runtime.workflows.run(...)`, or `start(...)`."""
        self.agents = AgentManager(tree)
        """The agents at the top; each may have others beneath it."""
        self.subagents = Subagents(tree, sessions=sessions, report=report_tool)
        """Agents that agents give work to, for one task or for as long as they live."""
        self.tools = tools
        """What the gateway offers to those who may call tools; empty until tools are added."""
        self.jobs = jobs
        """What goes on in the background."""
        self.sessions = sessions
        """The logs of agents: `await runtime.sessions.open(id)`."""
        self.remote = RemoteServices()
        """Services whose marked methods programs may call: `runtime.remote.add("release", Releases())`."""
        offer_services(self.remote, self.agents, sessions, jobs, tree.bus)
        self.journal = journal
        """What is recorded. None: the runtime was opened without `data`."""
        self.spill = Seam[SpillStore]("spill", "sole")
        """Where large results go, for everything that has some."""
        self.telemetry = Seam[Meter]("telemetry", "sole")
        """What takes figures."""

    @property
    def bus(self) -> Bus:
        """What happens: `actor/started`, `actor/failed`, `actor/ended` and what components declare."""
        return self.tree.bus

    @property
    def pipeline(self) -> Pipeline:
        """Where policies on tool calls are registered; they hold for every call beneath this runtime."""
        return self.tree.pipeline

    def spawn(
        self,
        actor: Actor | Callable[[], Actor],
        name: str,
        *,
        parent: Ref | None = None,
        restart: Restart | None = None,
        capacity: int = 1024,
    ) -> Ref:
        """Start an actor; see `Tree.spawn`."""
        return self.tree.spawn(actor, name, parent=parent, restart=restart, capacity=capacity)

    async def ask(
        self,
        to: str,
        form: Form | FormSchema | Mapping[str, Any],
        *,
        from_: str | None = None,
        timeout: float | msgspec.UnsetType | None = msgspec.UNSET,
        key: str | None = None,
        owner: str | None = None,
    ) -> dict[str, Any]:
        """Ask a terminal a form and wait for its values; see `TerminalManager.ask`. A schema is opened as a form first.

        Raises FormError SCHEMA for a schema with faults, naming each, besides what `TerminalManager.ask` raises.
        """
        opened = form if isinstance(form, Form) else Form(form)
        return await self.terminals.ask(from_, to, opened, timeout=timeout, key=key, owner=owner)

    async def serve(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        trusted_hosts: Iterable[str] = (),
        trusted_origins: Iterable[str] = (),
        limits: GatewayLimits | None = None,
        access: Access | None = None,
        tls: ssl.SSLContext | None = None,
        mounts: Iterable[Mount] = (),
        name: str = "gateway",
    ) -> Gateway:
        """Let programs and people in, at `gateway.url`; port 0 is a free one. See `open_gateway`.

        Without `access` tokens every program of this machine may do everything, and nobody else reaches it.

        `mounts` add what is at further paths, such as an MCP endpoint. It serves until the runtime ends, or until
        `gateway.stop()`. Raises ConfigError BIND where nothing can listen, and what else `open_gateway` does.
        """
        return await open_gateway(
            self.tree,
            Services(self.terminals, self.tools, self.workflows, self.snapshot, self.remote),
            name=name,
            host=host,
            port=port,
            trusted_hosts=trusted_hosts,
            trusted_origins=trusted_origins,
            limits=limits,
            access=access,
            tls=tls,
            mounts=mounts,
        )

    def snapshot(self) -> TreeSnapshot:
        """The whole tree, and who waits for whom, as one immutable struct."""
        return self.tree.snapshot()


async def _let_go_of_lost_runs(asks: DurableAsks, terminals: TerminalManager, workflows: WorkflowManager) -> None:
    """Forget durable asks of runs that are over or not stored: their process died before it could."""
    runs = {run for owner in asks.owners() if (run := run_of(owner)) is not None}
    if runs:
        for run in runs.difference(stored.id for stored in await workflows.list(status=("pending", "running"))):
            terminals.let_go(owner_of_run(run))


@asynccontextmanager
async def open_runtime(
    *,
    data: str | os.PathLike[str] | None = None,
    timeout: float | None = 300.0,
    cap: int | None = None,
    store: TerminalStore | None = None,
    workflow_store: WorkflowStore | None = None,
    session_persistence: Persistence | None = None,
    functions: Mapping[str, object] | None = None,
    error: ErrorHandler | None = None,
    wall_clock: Callable[[], float] = time.time,
    tune_gc: bool = False,
) -> AsyncGenerator[Runtime]:
    """A runtime within a trio program. Leaving the block stops everything in it, children first.

    `timeout` is how many seconds a form may stay unanswered where its terminal or its ask says nothing else (None: for
    ever), `cap` how many forms a terminal may hold. `store` keeps terminals' own settings (default: the journal, if
    there is one), `workflow_store` the runs of workflows and `session_persistence` the logs of agents (likewise);
    `functions` are the behaviours of the runs' tasks. `error(exception, event)` hears what listeners raise.
    `wall_clock` dates records, in seconds since 1970. `tune_gc` raises the thresholds of Python's garbage collector,
    for programs with many thousands of live asks; they are put back at the end.

    `data` is the file of the journal (`:memory:` for one that ends with the block), in which durable asks are recorded;
    without it there is none. Raises JournalError if it cannot be used: OWNED (context `pid`) if another process writes
    it, and what else `open_journal` raises.

    Raises TerminalError INVALID for a timeout or a cap that cannot be.
    """
    thresholds = gc.get_threshold()
    if tune_gc:
        gc.set_threshold(*GC_THRESHOLDS)
    try:
        async with run_tree() as tree:
            journal = durable = None
            if data is not None:  # first, so that it ends last
                journal = await open_journal(tree, data, tables=(ASKS, TERMINALS, *RUN_TABLES), wall_clock=wall_clock)
                durable = await open_durable_asks(journal)
                store = store or JournalTerminalStore(journal)
            if session_persistence is None and journal is not None:
                session_persistence = JournalPersistence(journal)
            sessions = SessionManager(tree, persistence=session_persistence, wall_clock=wall_clock)
            tree.pipeline.recorder = AgentRecorder()
            terminals = TerminalManager(
                tree, store=store, durable=durable, timeout=timeout, cap=cap, error=error, wall_clock=wall_clock
            )
            if workflow_store is None and journal is not None:
                workflow_store = JournalWorkflowStore(
                    journal, wall_clock=wall_clock, deleted=lambda id: terminals.let_go(owner_of_run(id))
                )
            workflows = WorkflowManager(
                WorkflowRunner(tree, wall_clock=wall_clock, let_go=terminals.let_go),
                store=workflow_store,
                functions=functions,
                error=error,
            )
            if durable is not None:
                await _let_go_of_lost_runs(durable, terminals, workflows)
            jobs = JobManager(tree, wall_clock=wall_clock)
            yield Runtime(tree, terminals, workflows, ToolManager(pipeline=tree.pipeline), sessions, jobs, journal)
    finally:
        if tune_gc:
            gc.set_threshold(*thresholds)
