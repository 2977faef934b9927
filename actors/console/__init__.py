"""Driving forms for the person who runs this process: at a terminal, or from lines that are piped in.

`TtyPrompts` is in `tty`, apart from here, since it needs questionary (the extra `console`).
"""

from greenroom.actors.console.console import Console
from greenroom.actors.console.keys import Key, parse_key, split_keys
from greenroom.actors.console.lines import LinePrompts, LineReader
from greenroom.actors.console.prompts import Prompts, Tone

__all__ = ["Console", "Key", "LinePrompts", "LineReader", "Prompts", "Tone", "parse_key", "split_keys"]
