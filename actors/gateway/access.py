"""Who is at the door: access tokens, what each grants, and how long.

A token is never kept, only its SHA-256; presented ones are compared in constant time, and every refusal looks alike.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib
import hmac
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, final

import msgspec

from greenroom.actors.client.allowance import Allowance
from greenroom.actors.config.toml import read_toml
from greenroom.protocol.access import EVERYTHING, TOKEN_PROTOCOL, Grants
from greenroom.protocol.errors import ConfigError

__all__ = ["Access", "AccessToken", "Caller", "Usage", "presented_token", "read_tokens"]

_LEAST: Final = 16
"""Characters that a token has at least: fewer could be guessed."""
_HASH = re.compile("[0-9a-f]{64}")

FORGET_AFTER: Final = 60.0
"""Seconds without a failed attempt after which an address starts afresh."""
REMEMBERED: Final = 4096
"""Addresses whose failed attempts are remembered."""


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """One token: whose it is, the hash by which it is known, what it grants and until when."""

    name: str
    digest: bytes
    """SHA-256 of the token."""
    grants: Grants
    expires: float | None = None
    """Seconds since 1970; None: it does not expire."""

    @classmethod
    def of(cls, name: str, token: str, grants: Grants, expires: float | None = None) -> AccessToken:
        """A token whose text is at hand. Raises ConfigError TOKEN for one that could be guessed."""
        if len(token) < _LEAST:
            raise ConfigError("TOKEN", f"The token of {name} is shorter than {_LEAST} characters; make a random one.")
        return cls(name=name, digest=_digest(token), grants=grants, expires=expires)


@final
class Usage:
    """What the holders of one token have in use, over all of their connections."""

    __slots__ = ("clients", "connections", "requests", "subscriptions")

    def __init__(self) -> None:
        self.clients = 0
        """That said hello and are not forgotten yet."""
        self.connections = 0
        """WebSockets and event streams that are open."""
        self.subscriptions = 0
        """Terminals that are looked at, once for each connection."""
        self.requests = Allowance()


class Caller(msgspec.Struct, frozen=True, eq=False):
    """Somebody who was let in."""

    name: str
    grants: Grants
    token: AccessToken | None
    """None: no token is configured, and every program of this machine may do everything."""
    usage: Usage
    """Shared by all who hold the token."""


@final
class Access:
    """The tokens of a gateway. Without any it is open: whoever reaches it may do everything.

    `wall_clock` says what the time is, in seconds since 1970; `clock` measures how long ago attempts failed.
    """

    def __init__(
        self,
        tokens: Iterable[AccessToken] = (),
        *,
        wall_clock: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tokens = tuple(tokens)
        self._wall_clock = wall_clock
        self._clock = clock
        self._failures: dict[str, tuple[int, float]] = {}
        self._usage: dict[str, Usage] = {}
        self._anybody = Caller("local", EVERYTHING, None, self._usage_of(""))
        self.open = not self._tokens
        """No token was configured when it was made. It stays as it is: taking the last token away opens nothing."""

    def replace(self, tokens: Iterable[AccessToken]) -> None:
        """From now on these are the tokens. What was let in by another ends within one heartbeat.

        Raises ConfigError TOKEN for an open gateway, whose clients present none.
        """
        if self.open:
            raise ConfigError("TOKEN", "This gateway was started without tokens; start it anew to ask for them.")
        self._tokens = tuple(tokens)

    def identify(self, presented: str | None) -> Caller | None:
        """Who presents this token; None: nobody who may come in. Looks at every token, whichever fits."""
        if self.open:
            return self._anybody
        digest = _digest(presented or "")
        found: AccessToken | None = None
        for token in self._tokens:
            if hmac.compare_digest(token.digest, digest):
                found = token
        if found is None or not presented or not self._in_time(found):
            return None
        return Caller(found.name, found.grants, found, self._usage_of(found.name))

    def _usage_of(self, name: str) -> Usage:
        return self._usage.setdefault(name, Usage())

    def admits(self, caller: Caller) -> bool:
        """Whether somebody who was let in still may stay: the token is there as it was, and has not expired."""
        return caller.token is None or (caller.token in self._tokens and self._in_time(caller.token))

    def _in_time(self, token: AccessToken) -> bool:
        return token.expires is None or self._wall_clock() < token.expires

    def failed(self, address: str) -> float:
        """Note a failed attempt from there. The seconds that its refusal is to wait: each further one waits longer."""
        now = self._clock()
        count, last = self._failures.pop(address, (0, now))
        count = 1 if now - last > FORGET_AFTER else count + 1
        self._failures[address] = count, now
        while len(self._failures) > REMEMBERED:
            del self._failures[next(iter(self._failures))]
        return min(0.05 * 2.0 ** min(count - 1, 10), 5.0)


def presented_token(authorization: Iterable[str], protocols: Iterable[str], header: Iterable[str]) -> str | None:
    """The token that a request presents: as a bearer (RFC 6750), in a WebSocket's subprotocols, or in the older header.

    None if there is none, or more than one.
    """
    found = [value[7:].strip() for value in authorization if value[:7].lower() == "bearer "]
    found += header
    for entry in protocols:
        if entry.startswith(TOKEN_PROTOCOL):
            found.append(_decoded(entry.removeprefix(TOKEN_PROTOCOL)))
    return found[0] if len(found) == 1 and found[0] else None


def _decoded(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, ValueError):
        return ""


# -------------------------------------------------------------------- where tokens come from


class _Entry(Grants, frozen=True, kw_only=True, forbid_unknown_fields=True):
    token_env: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    token_sha256: str | None = None
    expires: datetime.datetime | None = None


def read_tokens(path: Path, environment: Mapping[str, str] = os.environ) -> list[AccessToken]:
    """The tokens in a TOML file: one table for each, by name, with its grants.

    ::

        [ada]
        token_env = "ADA_TOKEN"          # or token_sha256 = "<hex>", never the token itself
        expires = 2027-01-01T00:00:00Z   # optional
        attach = ["reviewer", "ops-*"]
        answer = ["reviewer"]

    Blocks while it reads. Raises ConfigError: FILE if it cannot be read, TOKENS for what is wrong in it, by table and
    key.
    """
    tables = read_toml(path, what=f"The tokens in {path}", code="TOKENS")
    if not tables:
        raise ConfigError("TOKENS", f"{path} holds no token; write one table for each, such as [ada].")
    return [_token(path, name, table, environment) for name, table in tables.items()]


def _token(path: Path, name: str, table: Any, environment: Mapping[str, str]) -> AccessToken:
    try:
        entry = msgspec.convert(table, _Entry)
    except msgspec.ValidationError as error:
        raise ConfigError("TOKENS", f"{path}, [{name}]: {error}.", {"token": name}) from None
    grants = Grants(**{field: getattr(entry, field) for field in Grants.__struct_fields__})
    expires = None if entry.expires is None else _seconds(entry.expires)
    if (entry.token_env is None) == (entry.token_sha256 is None):
        why = "name the environment variable that holds the token (token_env), or its hash (token_sha256)"
        raise ConfigError("TOKENS", f"{path}, [{name}]: {why}, one of them.", {"token": name})
    if entry.token_sha256 is not None:
        if not _HASH.fullmatch(entry.token_sha256):
            raise ConfigError("TOKENS", f"{path}, [{name}]: token_sha256 is 64 hexadecimal digits.", {"token": name})
        return AccessToken(name=name, digest=bytes.fromhex(entry.token_sha256), grants=grants, expires=expires)
    token = environment.get(entry.token_env or "")
    if not token:
        raise ConfigError("TOKENS", f"{path}, [{name}]: the environment has no {entry.token_env}.", {"token": name})
    return AccessToken.of(name, token, grants, expires)


def _seconds(when: datetime.datetime) -> float:
    return (when if when.tzinfo is not None else when.replace(tzinfo=datetime.UTC)).timestamp()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
