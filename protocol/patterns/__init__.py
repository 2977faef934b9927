"""ECMAScript patterns, matched in time linear in the text: forms and workspaces find with these and nothing else.

`units` is the alphabet (UTF-16 code units, sets of them, case), `fragments` builds the linear engine's expressions,
`grammar` reads ECMAScript source into them, `matcher` runs the result.
"""

from __future__ import annotations

from greenroom.protocol.patterns.matcher import Pattern, compile_pattern

__all__ = ["Pattern", "compile_pattern"]
