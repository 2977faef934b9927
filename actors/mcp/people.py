"""The person at an MCP client: questions to them are asked in the client's own dialog, where it has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias, final

import trio
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from greenroom.actors.mcp.elicitation import elicitation_message, elicitation_schema, inexpressible, read_answer
from greenroom.protocol.errors import ToolError
from greenroom.protocol.forms import FormSchema, Value, parse_form

__all__ = ["Answered", "AtTerminal", "People"]

ATTEMPTS: Final = 3
"""How often an answer that the form refuses may be entered anew before the call fails."""

_KEY: Final = "answer"

Context: TypeAlias = ServerRequestContext[Any, Any]


class Answered(NamedTuple):
    """The person at the client has filled in the form."""

    values: dict[str, Value]


class AtTerminal(NamedTuple):
    """The form goes to its terminal; `reason` is why the client did not ask it."""

    reason: str


@final
class People:
    """Who sits at the client: terminals by these `names`, asked with the tool `ask`.

    Only what the client itself asks of them is put into its dialog, so that its person answers nobody else's questions.
    `timeout` is how many seconds a dialog may stay open.
    """

    def __init__(self, names: frozenset[str], *, tool: str, timeout: float | None) -> None:
        self._names = names
        self._tool = tool
        self._timeout = timeout

    def question(self, call: CallToolRequestParams) -> FormSchema | None:
        """The form that a call asks of the person at the client. None: it is no such call, or not a sound one."""
        arguments = call.arguments or {}
        to = arguments.get("to")
        if call.name != self._tool or not isinstance(to, str) or to not in self._names:
            return None
        return parse_form(arguments.get("schema"))

    async def ask(
        self, context: Context, call: CallToolRequestParams, schema: FormSchema
    ) -> Answered | AtTerminal | InputRequiredResult:
        """Put the form into the client's dialog.

        Since 2026-07-28 a server sends no requests: the call ends with what is asked, and comes again with the answer
        (SEP-2322); the form is read from it again, so that nothing has to be kept in between. Raises ToolError ANSWER
        if the person declines or enters nothing that the form takes, EXPIRE if they do not answer in time. Cancelled:
        the client is told to close its dialog.
        """
        version = context.protocol_version
        able = context.session.client_capabilities
        if able is None or able.elicitation is None or (able.elicitation.url and not able.elicitation.form):
            return AtTerminal("the client cannot ask its person")
        if (reason := inexpressible(schema, version)) is not None:
            return AtTerminal(f"the client cannot ask it: {reason}")
        if version not in MODERN_PROTOCOL_VERSIONS:
            return await self._ask_now(context, schema)
        answer = (call.input_responses or {}).get(_KEY)
        if answer is None:
            return InputRequiredResult(input_requests={_KEY: _request(schema, version)})
        judged = _judge(schema, answer)
        if not isinstance(judged, str):
            return judged
        return InputRequiredResult(input_requests={_KEY: _request(schema, version, judged)})

    async def _ask_now(self, context: Context, schema: FormSchema) -> Answered | AtTerminal:
        problem: str | None = None
        with trio.move_on_after(float("inf") if self._timeout is None else self._timeout):
            for _ in range(ATTEMPTS):
                try:
                    answer = await context.session.elicit_form(
                        elicitation_message(schema, problem),
                        elicitation_schema(schema, context.protocol_version),
                        related_request_id=context.request_id,
                    )
                except (MCPError, ValidationError):
                    return AtTerminal("the client failed at asking its person")
                judged = _judge(schema, answer)
                if not isinstance(judged, str):
                    return judged
                problem = judged
            raise ToolError("ANSWER", f"{ATTEMPTS} answers were refused, the last one because: {problem}")
        raise ToolError("EXPIRE", f"Nobody has answered at the client within {self._timeout:g} s.")


def _request(schema: FormSchema, version: str, problem: str | None = None) -> ElicitRequest:
    asked = elicitation_schema(schema, version)
    return ElicitRequest(
        params=ElicitRequestFormParams(message=elicitation_message(schema, problem), requested_schema=asked)
    )


def _judge(schema: FormSchema, answer: object) -> Answered | AtTerminal | str:
    """What an answer comes to; a text is why it has to be given anew."""
    if not isinstance(answer, ElicitResult) or answer.action == "cancel":
        return AtTerminal("the question was dismissed at the client")
    if answer.action == "decline":
        raise ToolError("ANSWER", "The person at the client declined to answer.")
    content: Mapping[str, Any] = answer.content or {}
    values = read_answer(schema, content)
    return values if isinstance(values, str) else Answered(values)
