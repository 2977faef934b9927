"""Globs against a plain model of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.protocol.errors import WorkspaceError
from greenroom.protocol.workspace import compile_glob

NAMES = st.text(st.sampled_from("ab.é😀"), min_size=1, max_size=3).filter(lambda name: name not in (".", ".."))
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PARTS = st.text(st.sampled_from("ab.é😀*?"), min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))
GLOBS = st.lists(PARTS | st.just("**"), min_size=1, max_size=4).map("/".join)


def fits(glob: list[str], path: list[str]) -> bool:
    """Whether the parts of a path fit those of a glob."""
    if not glob:
        return not path
    if glob[0] == "**":
        rest = glob[1:] or ["*"]
        return any(fits(rest, path[begin:]) for begin in range(len(path)))
    return bool(path) and named(glob[0], path[0]) and fits(glob[1:], path[1:])


def fits_beneath(glob: list[str], path: list[str]) -> bool:
    """`**` at the end stands for all that is in a folder, at any depth."""
    if glob[-1:] == ["**"]:
        return any(fits([*glob[:-1], *["*"] * depth], path) for depth in range(1, len(path) + 1))
    return fits(glob, path)


def named(glob: str, name: str) -> bool:
    if not glob:
        return not name
    if glob[0] == "*":
        return any(named(glob[1:], name[begin:]) for begin in range(len(name) + 1))
    return bool(name) and glob[0] in ("?", name[0]) and named(glob[1:], name[1:])


@given(GLOBS, PATHS)
def test_a_glob_fits_what_its_parts_fit(glob: str, path: str) -> None:
    parts = glob.split("/")
    whole = parts if len(parts) > 1 or glob == "**" else ["**", glob]
    assert compile_glob(glob)(path) == fits_beneath(whole, path.split("/"))


@given(st.lists(NAMES, min_size=1, max_size=3), PATHS)
def test_braces_stand_for_each_of_their_choices(choices: list[str], path: str) -> None:
    together = compile_glob(f"a/{{{','.join(choices)}}}/*")
    assert together(path) == any(compile_glob(f"a/{choice}/*")(path) for choice in choices)


@given(st.text(st.sampled_from("ab*?[]{}!,\\/-^$().|+\n😀\ud800"), max_size=12), PATHS)
def test_whatever_is_written_is_a_glob_or_refused(glob: str, path: str) -> None:
    refusals: list[WorkspaceError] = []
    try:
        assert compile_glob(glob)(path) in (True, False)
    except WorkspaceError as error:
        refusals.append(error)
    assert {refusal.code for refusal in refusals} <= {"PATTERN"}
    for refusal in refusals:
        refusal.message.encode()


@pytest.mark.parametrize(
    ("glob", "path", "fit"),
    [
        ("[a-c]", "b", True),
        ("[!a-c]", "b", False),
        ("[^a-c]", "d", True),
        ("[!a]b", "/b", False),
        ("[]a]", "]", True),
        ("[a\\]", "\\", True),
        ("\\*", "*", True),
        ("\\*", "a", False),
        ("\\{a,b}", "{a,b}", True),
        ("{a,{b,c}}.py", "c.py", True),
        ("{src,tests}/**", "tests/a/b", True),
        ("a**b", "a/b", False),
        ("a.b", "axb", False),
        ("A", "a", False),
        ("?", "😀", True),
        ("**/a", "a", True),
        ("a/**", "a", False),
        ("a/**/b", "a/b", True),
    ],
)
def test_a_glob_is_read_as_shells_read_it(glob: str, path: str, fit: bool) -> None:
    assert compile_glob(glob)(path) is fit
