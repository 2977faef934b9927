"""How large a form and its answers may be. Text is counted in UTF-16 code units, as every client counts it."""

from typing import Final

FIELDS: Final = 512
GROUPS: Final = 64
CHOICES: Final = 1024
"""Choices of one field."""

NAME: Final = 128
"""The name of a schema, a group or a field, and a field's reference to its group."""

STRING: Final = 65_536
"""One text of a document, one key of a `meta`, one answer or one entry of an answer."""

TEXT: Final = 1_048_576
"""All texts of a document together, the keys of its `meta`s included."""

NODES: Final = 16_384
"""Records, lists and single values of a document, the document itself included; keys are free."""

ENTRIES: Final = 1024
"""Entries of an answer that is a list."""

PATTERN: Final = 256
"""The source of a pattern."""

META_DEPTH: Final = 512
"""Containers within one another in a `meta`, itself the first."""

FAULTS: Final = 1000
"""Faults that are told of one document: who made more of them has seen enough."""
