"""A service of the kind that a program has, offered by a gateway on a real port."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import msgspec
import pytest
import trio
from msgspec import UNSET, UnsetType

from greenroom.actors.remote import remote
from greenroom.protocol.errors import RemoteError
from tests.gateway.conftest import Site, site_with
from tests.gateway.raw import Raw, head, raw

__all__ = ["Channel", "Project", "Release", "Releases", "offered", "post", "post_over", "posted", "raw_post"]


class Channel(msgspec.Struct, frozen=True):
    """Where a release goes."""

    name: Literal["stable", "beta"]
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0


class Release(msgspec.Struct, frozen=True, rename="camel"):
    """A release that was started."""

    version: str
    project_name: str = ""


class Signed(Release, frozen=True):
    """More than the contract says."""

    secret: str = "hunter2"


class Project:
    """Something that lives."""

    def __init__(self, name: str) -> None:
        self.name = name


class Releases:
    """Starts releases."""

    def __init__(self) -> None:
        self.projects = {"a": Project("apple")}
        self.started: list[str] = []
        self.ended: list[str] = []
        self.entered = trio.Event()
        self.let_go = trio.Event()
        self.next: Any = None
        """What `give` gives back."""

    async def find(self, id: str) -> Project | None:
        await trio.lowlevel.checkpoint()
        return self.projects.get(id)

    @remote("start")
    async def start(self, version: str, project: Project, channel: Channel | UnsetType = UNSET) -> Release:
        """Start a release of a project.

        On the stable channel where nothing else is said.
        """
        await trio.lowlevel.checkpoint()
        if version == "frozen":
            raise RemoteError("release/frozen", "Nothing is released on Fridays.", {"until": "Monday"})
        if version == "none":
            raise RemoteError("release/not-found", "There is no such version.")
        self.started.append(version if isinstance(channel, UnsetType) else f"{version} {channel.name}")
        return Signed(version, project.name)

    @remote("count", repeatable=True)
    async def count(self) -> int:
        """How many were started."""
        await trio.lowlevel.checkpoint()
        return len(self.started)

    @remote("forget")
    async def forget(self) -> None:
        await trio.lowlevel.checkpoint()
        self.started.clear()

    @remote("hold")
    async def hold(self, then: Literal["raise", "return"] | UnsetType = UNSET) -> str:
        """Wait to be let go; `then` says what becomes of a cancellation."""
        self.entered.set()
        try:
            await self.let_go.wait()
        except trio.Cancelled:
            self.ended.append("cancelled")
            if then == "raise":
                raise ValueError("hunter2") from None
            if then == "return":
                return "all the same"
            raise
        return "let go"

    @remote("give")
    async def give(self) -> Release:
        await trio.lowlevel.checkpoint()
        if isinstance(self.next, Exception):
            raise self.next
        given: Release = self.next
        return given

    async def hidden(self) -> None:
        raise AssertionError("it is not marked, and was called")


@asynccontextmanager
async def offered(**options: Any) -> AsyncGenerator[tuple[Site, Releases], None]:
    """A gateway whose service is `release`."""
    async with site_with(**options) as site:
        releases = Releases()
        site.runtime.remote.lookups.register(Project, releases.find)
        site.runtime.remote.add("release", releases)
        yield site, releases


@pytest.fixture
async def releases() -> AsyncIterator[tuple[Site, Releases]]:
    async with offered() as site_and_service:
        yield site_and_service


def posted(path: str, body: bytes, **headers: str) -> bytes:
    """A request as it is sent; `content_type=...` and the like stand for headers."""
    fields = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(len(body))}
    fields |= {name.replace("_", "-").title(): value for name, value in headers.items()}
    return head("POST", path, fields) + body


async def post(site: Site, name: str, args: Any = None, **headers: str) -> tuple[int, Any]:
    """Call a method over HTTP: status and what came back as JSON."""
    async with raw(site.gateway.port) as connection:
        return await post_over(connection, name, args, **headers)


async def post_over(connection: Raw, name: str, args: Any = None, **headers: str) -> tuple[int, Any]:
    """The same on a connection that is open."""
    body = json.dumps({"args": args or {}}).encode()
    await connection.stream.send_all(posted(f"/api/{name}", body, **headers))
    response = await connection.response("POST")
    return response.status, json.loads(response.text)


async def raw_post(site: Site, request: bytes) -> Any:
    """Send a request as it is; what came back as JSON."""
    async with raw(site.gateway.port) as connection:
        await connection.stream.send_all(request)
        return json.loads((await connection.response("POST")).text)
