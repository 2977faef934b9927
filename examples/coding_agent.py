"""An agent that works on the files of a folder: it reads, edits, is refused a write over what somebody else has changed
meanwhile, and asks a person what to do. Its model is scripted, so that this runs without a network.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio

import greenroom
from greenroom import ChatMessage, ProviderResult, ToolCall, ToolDefinition

QUESTION = {
    "id": "port",
    "question": "Somebody has set the port to 9000. Which one is right?",
    "options": [{"label": "8000", "description": "as it was"}, {"label": "9000"}],
}


def calling(name: str, **arguments: Any) -> ProviderResult:
    return ProviderResult("", tools=(ToolCall("1", name, arguments),))


async def main(folder: Path) -> None:
    settings = folder / "settings.py"
    settings.write_text("DEBUG = True\nPORT = 8000\n")

    def meanwhile(_messages: Sequence[ChatMessage], _tools: Sequence[ToolDefinition] | None) -> ProviderResult:
        settings.write_text("DEBUG = False\nPORT = 9000\n")  # somebody else's editor
        return calling("write", file_path="settings.py", content="DEBUG = False\nPORT = 8080\n")

    script = greenroom.ScriptedProvider(
        [
            calling("grep", pattern="DEBUG", include="*.py"),
            calling("read", file_path="settings.py"),
            calling("edit", file_path="settings.py", old_string="DEBUG = True", new_string="DEBUG = False"),
            meanwhile,
            calling("read", file_path="settings.py"),
            calling("ask_user_question", questions=[QUESTION]),
            calling("edit", file_path="settings.py", old_string="PORT = 9000", new_string="PORT = 8000"),
            ProviderResult("The port is 8000 again."),
        ]
    )
    async with greenroom.open_runtime() as runtime, trio.open_nursery() as nursery:
        greenroom.observation_policy(runtime.bus)  # no agent changes what it has not seen as it is
        workspaces = greenroom.WorkspaceManager(runtime.tree)
        await workspaces.mount(folder)
        runtime.terminals.add("you")
        nursery.start_soon(person, runtime)
        tools = [
            *greenroom.file_tools(workspaces),
            greenroom.ask_user_question_tool(runtime.terminals, "you"),
        ]
        agent = runtime.agents.add(greenroom.Agent(script, id="coder", tools=tools, limit=20))
        agent.context.messages.add(greenroom.MessageInput("user", "Switch debugging off."))
        result = await agent.generate()
        for message in agent.context.messages.view():
            if message.role == "tool":
                print(message.content, end="\n---\n")
        print(result.content)
        print(settings.read_text())


async def person(runtime: greenroom.Runtime) -> None:
    asked = trio.Event()
    runtime.terminals.emitter.on("pending", lambda _form: asked.set())
    await asked.wait()
    (form,) = runtime.terminals.pending("you")
    await runtime.terminals.answer("you", form.id, {"question1": "8000"})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        trio.run(main, Path(folder))
