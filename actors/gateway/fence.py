"""The trust fence: whether a request comes from where it may come from, by its headers alone.

A page that somebody reads in a browser can reach any port of that machine. It cannot choose these headers: `Host` says
which name it used (a name of its own that it lets point here, in DNS rebinding), `Origin` and `Sec-Fetch-Site` (Fetch
Metadata) whose page it is. This is no authentication: any program of the machine passes.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, final

from greenroom.protocol.errors import ConfigError

__all__ = ["Fence", "is_loopback"]

_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://(.+)", re.IGNORECASE)
_PORTS: Final = {"http": 80, "https": 443}


class _Authority(NamedTuple):
    host: str
    port: int | None


@final
class Fence:
    """Lets requests through whose `Host` is this machine itself or trusted, and whose page, if any, is at that host.

    `hosts` are further names under which the gateway may be called, such as `greenroom.example:8443`; one without a
    port admits any. `origins` are further pages that may call it, such as `http://localhost:5173`, or `null` for pages
    that have none (files, sandboxed frames).

    Raises ConfigError TRUST for an entry that is not written as it is compared.
    """

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._hosts = frozenset(map(_canonical_host, hosts))
        self._origins = frozenset(map(_canonical_origin, origins))

    def objection(self, host: Sequence[str], origin: Sequence[str], site: Sequence[str]) -> str | None:
        """Why a request with these `Host`, `Origin` and `Sec-Fetch-Site` headers is refused, or None if it is not."""
        called = _parse(host[0]) if len(host) == 1 else None
        if called is None or not self._trusted(called):
            return "This host name is not trusted here."
        if any(value.strip().lower() == "cross-site" for value in site):
            return "Requests of other sites are refused."
        if not origin or (len(origin) == 1 and (origin[0] in self._origins or _is_at(origin[0], called))):
            return None
        return "Requests of this origin are refused."

    def _trusted(self, called: _Authority) -> bool:
        return is_loopback(called.host) or called in self._hosts or _Authority(called.host, None) in self._hosts


def is_loopback(host: str) -> bool:
    """The host is this machine, and no other machine can make it mean something else."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _parse(text: str) -> _Authority | None:
    match = _AUTHORITY.fullmatch(text.strip())
    if match is None:
        return None
    return _Authority(match[1].lower(), int(match[2]) if match[2] else None)


def _is_at(origin: str, called: _Authority) -> bool:
    """The page is at the very host and port that the request was sent to."""
    match = _ORIGIN.fullmatch(origin)
    page = _parse(match[2]) if match is not None else None
    if match is None or page is None:
        return False
    usual = _PORTS[match[1].lower()]
    return page.host == called.host and (page.port or usual) == (called.port or usual)


def _canonical_host(entry: str) -> _Authority:
    parsed = _parse(entry)
    if parsed is None or _written(parsed) != entry:
        raise ConfigError(
            "TRUST",
            f"The trusted host {entry!r} is not written as browsers send it: a name in lower case or an address, then "
            "perhaps a port, such as greenroom.example:8443 or [fd00::1].",
            {"entry": entry},
        )
    return parsed


def _canonical_origin(entry: str) -> str:
    scheme, _, authority = entry.partition("://")
    parsed = _parse(authority)
    if entry != "null" and (
        scheme not in _PORTS or parsed is None or _written(parsed) != authority or parsed.port == _PORTS[scheme]
    ):
        raise ConfigError(
            "TRUST",
            f"The trusted origin {entry!r} is not written as browsers send it: http or https, a host in lower case, "
            "and a port unless it is the usual one, such as http://localhost:5173; or null.",
            {"entry": entry},
        )
    return entry


def _written(authority: _Authority) -> str:
    """How a browser writes it: addresses in their shortest form, ports without leading zeros."""
    host = authority.host
    try:
        address = ipaddress.ip_address(host.strip("[]"))
        host = f"[{address}]" if address.version == 6 else str(address)
    except ValueError:
        pass
    return host if authority.port is None else f"{host}:{authority.port}"
