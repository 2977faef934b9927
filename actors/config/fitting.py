"""Whether the keys of a configuration fit each other, beyond what the type of each says."""

from __future__ import annotations

from typing import NoReturn
from urllib.parse import urlsplit

from greenroom.actors.config.tables import Config
from greenroom.protocol.errors import ConfigError

__all__ = ["check"]


def check(config: Config) -> None:
    """Raises ConfigError CONFIG_CONFLICT, which names both keys (context `keys`), for the first two that do not fit."""
    gateway, names, llm = config.gateway, config.terminals.names, config.llm
    if (gateway.cert is None) != (gateway.key is None):
        _refuse("TLS needs a certificate and its key: give both {}.", "gateway.cert", "gateway.key")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        _refuse(f"{{}} has {twice} twice: there can be one terminal of a name.", "terminals.names")
    approvals, timeout = config.approvals, config.policies.timeout
    if approvals.terminal is not None and approvals.terminal not in names:
        _refuse(f"{{}} do not fit: there is no terminal {approvals.terminal}.", "approvals.terminal", "terminals.names")
    questions = config.questions
    if questions is not None and questions.terminal not in names:
        _refuse(f"{{}} do not fit: there is no terminal {questions.terminal}.", "questions.terminal", "terminals.names")
    if timeout is not None and timeout.each_attempt and config.policies.retry is None:
        _refuse("{} do not fit: there is one attempt.", "policies.timeout.each_attempt", "policies.retry")
    if config.agent_loop.session is not None and config.journal is None and config.sessions is None:
        _refuse(
            "{} do not fit: nothing keeps the session. Add --data FILE, or [journal] data or [sessions] root.",
            "agent_loop.session",
            "sessions.root",
        )
    if llm.script is not None and llm.provider != "scripted":
        _refuse(
            "A script is played by the provider `scripted` alone: {} do not fit.",
            "llm.script",
            "llm.provider",
        )
    if llm.base_url is not None and _holds_secret(llm.base_url):
        raise ConfigError(
            "CONFIG_SECRET",
            "llm.base_url holds a name and a password, which do not stand in a configuration: name a credential in "
            "llm.key instead.",
            {"keys": ["llm.base_url"]},
        )


def _refuse(sentence: str, *keys: str) -> NoReturn:
    raise ConfigError("CONFIG_CONFLICT", sentence.format(" and ".join(keys)), {"keys": list(keys)})


def _holds_secret(url: str) -> bool:
    try:
        return "@" in urlsplit(url).netloc
    except ValueError:
        return "@" in url
