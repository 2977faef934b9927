"""An agent that gives work to others, one of which asks it back: that would be a circle, and it goes on without.

The models are scripted, so that this runs without a network; see `agent.py` for real ones.
"""

import trio

import greenroom
from greenroom import ProviderResult, ScriptedProvider, ToolCall

FORM = {"label": "Which version?", "fields": [{"control": "text", "name": "version"}]}


def calling(tool: str, **arguments: object) -> ProviderResult:
    return ProviderResult("", tools=(ToolCall("1", tool, arguments),))


async def main() -> None:
    async with greenroom.open_runtime() as runtime:
        registry = greenroom.AgentRegistry(
            {
                "writer": ScriptedProvider(
                    [
                        calling("ask", to="planner", schema=FORM),
                        lambda messages, _: ProviderResult(f"I could not ask: {messages[-1].content}"),
                    ]
                )
            },
            tools={"ask": greenroom.ask_tool(runtime.terminals, None)},
        )
        planner = greenroom.Agent(
            ScriptedProvider(
                [
                    calling("agent", task="Write the notes of the release.", provider="writer"),
                    lambda messages, _: ProviderResult(messages[-1].content),
                ]
            ),
            id="planner",
            tools=[greenroom.agent_tool(registry, tools=["ask"])],
            on={"progress": print},
        )
        runtime.agents.add(planner)
        runtime.terminals.add("planner", operator=planner.ref)  # whoever asks there waits for the planner
        planner.context.messages.add(greenroom.MessageInput("user", "Release 4.2."))
        print((await planner.generate()).content)


if __name__ == "__main__":
    trio.run(main)
