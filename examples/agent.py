"""An agent that asks a person before it publishes. Its model is scripted, so that this runs without a network.

With a real one, put `async with OpenAIProvider("gpt-5") as provider:` (from `greenroom.actors.providers.openai`, with
the extra `agents` and a key in OPENAI_API_KEY) in the place of the script; nothing else changes.
"""

from typing import Any

import trio

import greenroom

FORM = {"label": "Publish 4.2?", "fields": [{"control": "confirm", "name": "publish", "rule": {"required": True}}]}

ASKS = greenroom.ProviderResult(
    "I ask the reviewer.", tools=(greenroom.ToolCall("1", "ask", {"to": "reviewer", "schema": FORM}),)
)
ANSWERS = greenroom.ProviderResult("It is published.")


async def main() -> None:
    provider = greenroom.ScriptedProvider([ASKS, ANSWERS])
    async with greenroom.open_runtime() as runtime, trio.open_nursery() as nursery:
        runtime.terminals.add("reviewer")
        nursery.start_soon(reviewer, runtime)
        ask = greenroom.ask_tool(runtime.terminals, from_="planner")
        agent = runtime.agents.add(greenroom.Agent(provider, id="planner", tools=[ask], timeout=60.0, patience=True))
        agent.context.messages.add(greenroom.MessageInput("user", "Publish release 4.2."))
        async with agent.stream() as run:
            async for chunk in run.events:
                print(chunk)
            print(await run.result())


async def reviewer(runtime: greenroom.Runtime) -> None:
    await trio.sleep(0.1)  # a person takes a moment
    (form,) = runtime.terminals.pending("reviewer")
    answers: dict[str, Any] = {"publish": True}
    await runtime.terminals.answer("reviewer", form.id, answers)


if __name__ == "__main__":
    trio.run(main)
