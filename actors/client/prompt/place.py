"""Where a terminal is on a bridge."""

from __future__ import annotations

import logging
from urllib.parse import quote, urlsplit

import h11

from greenroom.actors.client.dialing import Address
from greenroom.actors.client.prompt.exchange import encoded
from greenroom.protocol.bridge import TOKEN_HEADER
from greenroom.protocol.errors import ConfigError

__all__ = ["find_terminal", "token_headers"]

_LOCAL = ("localhost", "127.0.0.1", "::1")

logger = logging.getLogger("greenroom.client")


def find_terminal(url: str, terminal: str, path: str) -> Address:
    """The terminal of that name at the bridge whose `path` (with `:name` in it) is beneath `url`.

    Raises ConfigError: URL, or NAME for a name that cannot be a segment of a path.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _no_url() from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise _no_url()
    secure = parts.scheme == "https"
    segment = _segment(terminal)
    beneath = "/".join(segment if part == ":name" else part for part in path.split("/"))
    return Address(
        url=url,
        host=parts.hostname,
        port=port or (443 if secure else 80),
        resource=parts.path.rstrip("/") + beneath,
        secure=secure,
    )


def token_headers(token: str | None, address: Address) -> tuple[tuple[str, str], ...]:
    """The headers that present the token. Raises ConfigError TOKEN for one that no header can hold."""
    if token is None:
        return ()
    if not address.secure and address.host not in _LOCAL:
        logger.warning("The token for %s goes over plain HTTP, where others can read it; use https.", address.host)
    try:
        h11.Request(method="GET", target="/", headers=encoded([("Host", "x"), (TOKEN_HEADER, token)]))
    except (h11.LocalProtocolError, UnicodeEncodeError):
        told = "The token holds what no HTTP header can: white space at its ends, line ends, or other than Latin-1."
        raise ConfigError("TOKEN", told) from None
    return ((TOKEN_HEADER, token),)


def _segment(name: str) -> str:
    try:
        segment = quote(name, safe="")
    except UnicodeEncodeError:
        segment = ""
    if not segment:
        raise ConfigError(
            "NAME",
            "A terminal whose name is empty, or has no UTF-8, has no place in a URL: give it another name.",
            {"terminal": name.encode(errors="replace").decode()},
        )
    # A dot segment is taken for a step upwards by whoever looks at the path on its way (RFC 3986, section 5.2.4).
    return segment.replace(".", "%2E") if segment in (".", "..") else segment


def _no_url() -> ConfigError:
    # It is not repeated: what makes it wrong may be a password in it.
    return ConfigError(
        "URL",
        "The URL is no address of a bridge: it begins with http:// or https:// and names a host, without a user or"
        " password, like http://127.0.0.1:8642.",
    )
