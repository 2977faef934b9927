"""An agent that goes on from its log: what a second process knows is what the first one has written there.

The models are scripted, so that this runs without a network. `greenroom log clerk --data work.db` reads the log.
"""

import tempfile
from pathlib import Path

import trio

import greenroom
from greenroom import ProviderResult, ScriptedProvider, Tool, ToolCall

LOOK = ProviderResult("", tools=(ToolCall("1", "look", {"at": "the plan"}),))


async def life(data: Path, said: str, *turns: object) -> None:
    """One process: the agent on its session, told something."""
    provider = ScriptedProvider(turns)  # type: ignore[arg-type]
    look = Tool("look", lambda call: f"{call['at']} says: release on Monday")
    async with greenroom.open_runtime(data=data) as runtime:
        session = await runtime.sessions.open("clerk")
        agent = runtime.agents.add(greenroom.Agent(provider, session=session, tools=[look]))
        agent.context.messages.add(greenroom.MessageInput("user", said))
        print(said, "->", (await agent.generate()).content)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "work.db")
        await life(data, "When is the release?", LOOK, ProviderResult("On Monday."))
        await life(data, "How do you know?", lambda messages, _: ProviderResult(f"I saw: {messages[2].content}"))
        async with greenroom.open_runtime(data=data) as runtime:
            for event in (await runtime.sessions.read("clerk")).events():
                print(event.seq, event.type)


if __name__ == "__main__":
    trio.run(main)
