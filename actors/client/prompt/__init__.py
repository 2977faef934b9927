"""The client of a bridge: it shows the forms of one terminal, one at a time, and posts their answers."""

from greenroom.actors.client.prompt.client import Ask, PromptClient, open_prompt_client

__all__ = ["Ask", "PromptClient", "open_prompt_client"]
