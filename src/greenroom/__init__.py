"""greenroom: agents, people and workflow runs ask each other whole forms, and nobody waits in a circle.

The names are in `__init__.pyi`, each with the module that holds it, which is imported when the name is first used: who
needs the client alone does not wait for databases and models. With EAGER_IMPORT=1 in the environment all are at once.
"""

import lazy_loader  # pyright: ignore[reportMissingTypeStubs]  # it has none

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # pyright: ignore[reportUnknownVariableType]
