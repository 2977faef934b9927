"""Write the catalogs in `docs/` from the code, or check that they are what the code says.

::

    python -m greenroom.docs            # write
    python -m greenroom.docs --check    # exit 1 if one differs, naming it

The folder is that of the checkout from which the package is imported: install it with `pip install -e .`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from greenroom.actors.catalogs import events_reference, tools_reference
from greenroom.actors.config.reference import config_reference
from greenroom.actors.gateway.reference import rpc_reference

__all__ = ["DOCUMENTS", "main"]

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs"

DOCUMENTS: Final[dict[str, Callable[[], str]]] = {
    "config.md": config_reference,
    "events.md": events_reference,
    "rpc.md": rpc_reference,
    "tools.md": tools_reference,
}
"""What writes each document, by the name of its file."""


def main(arguments: Sequence[str], folder: Path = FOLDER) -> int:
    """Write or check every document; the exit code."""
    if list(arguments) not in ([], ["--check"]):
        print("usage: python -m greenroom.docs [--check]", file=sys.stderr)
        return 2
    if not folder.is_dir():
        print(
            f"There is no folder {folder}: the catalogs are part of a checkout. "
            "Install that with `pip install -e .`, and run this from there.",
            file=sys.stderr,
        )
        return 2
    stale = False
    for name, write in DOCUMENTS.items():
        path, text = folder / name, write()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale = True
        if arguments:
            print(f"docs/{name} is not what the code says; run python -m greenroom.docs")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"docs/{name} written")
    return 1 if arguments and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
