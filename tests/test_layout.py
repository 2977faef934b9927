"""How the code is laid out: one identity of every module, links that are links, imports that point one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("protocol", "runtime", "actors")

# What a pure module may not even import: it could not be of use without doing something.
# fmt: off
IMPURE = frozenset({
    "trio", "trio_websocket", "anyio", "asyncio", "outcome", "sniffio", "h11", "wsproto", "httpx", "httpx_sse",
    "sqlite3", "sqlite_utils", "cyclopts", "rich", "socket", "ssl", "select", "selectors", "socketserver", "http",
    "urllib.request", "subprocess", "multiprocessing", "concurrent", "threading", "queue", "signal", "os", "io",
    "pathlib", "tempfile", "shutil", "fcntl", "pty", "termios", "tty",
})
# fmt: on

EXTRAS = ("mcp", "mcp_types", "httpx", "questionary")
"""What an installation may lack, with the modules that need it."""

# The rooms of `actors` that are no living things, and what none of those may import.
COMPOSITION = frozenset({"gateway", "toolbox", "console", "client", "cli", "system", "portal", "mcp", "catalogs"})
ABOVE = frozenset({"gateway", "toolbox", "console", "cli", "system", "portal", "mcp", "catalogs"})


def imported(source: str, module: str, is_package: bool = False) -> set[str]:
    """Everything a module imports, wherever in it, by full name; `from a import b` counts as `a.b`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                depth = node.level - (1 if is_package else 0)
                package = ".".join(module.split(".")[: len(module.split(".")) - depth])
                base = f"{package}.{base}" if base else package
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return names


def refused(module: str, imports: set[str]) -> list[str]:
    """What a module `greenroom.<room>.<part>...` imports though it may not."""
    _, room, part, *_ = (*module.split("."), "")
    return sorted(name for name in imports if not _may_import(room, part, name))


def _may_import(room: str, part: str, name: str) -> bool:
    top, to_room, to_part, *_ = (*name.split("."), "", "")
    if top != "greenroom":
        return room != "protocol" or IMPURE.isdisjoint({top, f"{top}.{to_room}"})
    if room == "protocol":
        return to_room == "protocol"
    if room == "runtime":
        return to_room in ("protocol", "runtime")
    if part in ("system", "cli"):
        return True
    if part in ("client", "console"):
        return to_room == "protocol" or (to_room, to_part) == ("actors", part)
    if to_room not in ROOMS:
        return False  # the facade imports the rooms
    if to_room == "actors" and part not in COMPOSITION:
        return to_part not in ABOVE
    return True


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the three folders with its file."""
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            parts = file.relative_to(ROOT).with_suffix("").parts
            yield ".".join(("greenroom", *parts[: -1 if parts[-1] == "__init__" else None])), file


@pytest.mark.parametrize(("module", "file"), [pytest.param(*found, id=found[0]) for found in modules()])
def test_imports_point_one_way(module: str, file: Path) -> None:
    found = imported(file.read_text(encoding="utf-8"), module, is_package=file.name == "__init__.py")
    assert refused(module, found) == []


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("greenroom.protocol.forms", "import trio", ["trio"]),
        ("greenroom.protocol.forms", "import urllib.request", ["urllib.request"]),
        ("greenroom.protocol.forms", "from urllib.parse import quote", []),
        (
            "greenroom.protocol.forms",
            "def f():\n    from greenroom.runtime.bus import Bus",
            ["greenroom.runtime.bus.Bus"],
        ),
        ("greenroom.protocol.forms.rules", "from ..emitter import Emitter", []),
        ("greenroom.protocol.forms.rules", "from ...runtime import bus", ["greenroom.runtime.bus"]),
        ("greenroom.runtime.bus", "import trio\nfrom greenroom.protocol import errors", []),
        ("greenroom.runtime.bus", "import greenroom.actors.terminal", ["greenroom.actors.terminal"]),
        ("greenroom.runtime.bus", "from greenroom import actors", ["greenroom.actors"]),
        ("greenroom.runtime.bus", "from greenroom import open_runtime", ["greenroom.open_runtime"]),
        ("greenroom.actors.client", "from greenroom.runtime import bus", ["greenroom.runtime.bus"]),
        ("greenroom.actors.client.retry", "from greenroom.actors.client import http", []),
        ("greenroom.actors.terminal", "from greenroom.actors import gateway", ["greenroom.actors.gateway"]),
        ("greenroom.actors.workflow.run", "from greenroom.actors.terminal import Terminal", []),
        ("greenroom.actors.gateway.http", "from greenroom.actors.terminal import Terminal", []),
        ("greenroom.actors.system", "from greenroom.actors.gateway import Listener", []),
    ],
)
def test_the_import_rules_see_what_is_wrong(module: str, source: str, wrong: list[str]) -> None:
    assert refused(module, imported(source, module)) == wrong


def test_every_module_has_one_identity() -> None:
    """The repository's root is on the path in development: a bare `import runtime` would load a second copy."""
    code = (
        "import importlib, pkgutil, sys, greenroom\n"
        "for found in pkgutil.walk_packages(greenroom.__path__, 'greenroom.'):\n"
        "    if found.name.endswith('.__main__'): continue\n"
        "    try: importlib.import_module(found.name)\n"
        "    except ModuleNotFoundError as missing:\n"
        f"        if missing.name.split('.')[0] not in {EXTRAS}: raise\n"
        "print(*sorted(sys.modules), sep='\\n')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = done.stdout.split()
    assert [name for name in loaded if name.split(".")[0] in ROOMS] == []
    assert {f"greenroom.{room}" for room in ROOMS} <= set(loaded)


@pytest.mark.parametrize("room", ROOMS)
def test_the_package_reaches_the_folders_through_links(room: str) -> None:
    link = ROOT / "src" / "greenroom" / room
    assert link.is_symlink(), (
        f"{link} is no symbolic link to ../../{room}: development needs a file system and a git (core.symlinks) that "
        "keep symbolic links, as on Linux, macOS and WSL."
    )
    assert link.resolve() == ROOT / room


def test_a_public_name_is_imported_when_it_is_used_and_every_one_is_there() -> None:
    code = (
        "import sys, greenroom\n"
        "assert not {name for name in sys.modules if name.startswith('greenroom.')}\n"
        "greenroom.parse_form\n"
        "assert 'trio' not in sys.modules\n"
        "for name in greenroom.__all__: getattr(greenroom, name)\n"
        "print(*greenroom.__all__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    stub = ast.parse((ROOT / "src" / "greenroom" / "__init__.pyi").read_text(encoding="utf-8"))
    (told,) = [ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign)]
    assert done.stdout.split() == sorted(told)
