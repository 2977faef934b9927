"""Random sound schemas, answers for them, and values that no client should send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from greenroom.protocol.forms import FormSchema, Value, parse_form

__all__ = ["answers", "documents", "junk", "schemas"]

NAMES = ["a", "b", "10", "2", "constructor", "\u00e9", "a b"]
CHOICES = [
    {"value": "a", "label": "A"},
    {"value": "b", "label": "B", "disabled": True},
    {"value": "", "label": "none", "help": "h"},
    {"value": "c", "label": "C", "disabled": False},
]

TEXTS = st.sampled_from(
    ["", " ", "a", "ab 1", "A1b2", "-5", "a@b.c", "http://x", "\u00e9", "\N{GRINNING FACE}", "a\nb"]
)
TEMPORAL = {
    "date": ["2025-12-31", "2026-02-31", "2026-06-01"],
    "time": ["00:00", "09:30", "09:30:00", "23:59:59"],
    "datetime": ["2026-01-01T00:00", "2026-01-01T00:00:01", "2026-12-31T23:59"],
}
NUMBERS = st.sampled_from([-1, 0, 0.5, 1, 2, 2.5, 1e21, 2**53])
PATTERNS = st.sampled_from(["", "a", "^a$", r"\d", r"^\w+$", "[^]", "^.$", "(?<n>b)|c"])


def held(control: str) -> st.SearchStrategy[Any]:
    """Values that a field of the control (with `CHOICES`, taking several files, closed) holds."""
    if control in TEMPORAL:
        return st.sampled_from(TEMPORAL[control])
    by_control: dict[str, st.SearchStrategy[Any]] = {
        "number": NUMBERS,
        "color": st.sampled_from(["#000000", "#FFffFF"]),
        "confirm": st.booleans(),
        "select": st.sampled_from(["a", "", "c"]),
        "checkbox": st.lists(st.sampled_from(["a", "", "c"]), unique=True),
        "file": st.lists(st.sampled_from(["x.txt", "y.txt"]), max_size=3),
    }
    return by_control.get(control, TEXTS)


@st.composite
def rules(draw: st.DrawFn, control: str) -> dict[str, Any]:
    """Named rules that mean something on the control; limits are in order."""
    rule: dict[str, Any] = {}
    flags = ["required"]
    if control not in ("number", "confirm", "checkbox", "file"):
        flags += ["email", "url", "integer", "alphanumeric"]
        if draw(st.booleans()):
            rule["pattern"] = draw(PATTERNS)
    if control == "number":
        flags.append("integer")
        if draw(st.booleans()):
            rule["step"] = draw(st.sampled_from([0.1, 1, 2]))
    for flag in draw(st.lists(st.sampled_from(flags), unique=True, max_size=2)):
        rule[flag] = draw(st.sampled_from([True, True, False]))
    if control not in ("color", "confirm", "select"):
        bounds: list[Any] = sorted(TEMPORAL.get(control, [0, 1, 2.5]))
        for name, bound in zip(
            ("minimum", "maximum"), draw(st.lists(st.sampled_from(bounds), max_size=2)), strict=False
        ):
            rule[name] = bound
        if "maximum" in rule and rule["minimum"] > rule["maximum"]:
            rule["minimum"], rule["maximum"] = rule["maximum"], rule["minimum"]
    return rule


@st.composite
def fields(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """The document of a field."""
    controls = ["text", "editor", "password", "number", "color", "confirm", "select", "checkbox", "file", *TEMPORAL]
    control = draw(st.sampled_from(controls))
    field: dict[str, Any] = {"control": control, "name": name}
    for flag in draw(st.lists(st.sampled_from(["hidden", "disabled", "locked"]), unique=True, max_size=1)):
        field[flag] = draw(st.booleans())
    if draw(st.booleans()):
        field["meta"] = draw(st.dictionaries(st.sampled_from(["k", "__proto__"]), json_values(), max_size=2))
    if draw(st.booleans()):
        field["group"] = "g"
    if control in ("select", "checkbox"):
        field["choices"] = CHOICES
    if control == "file":
        field["multiple"] = True
    elif control != "password" and draw(st.booleans()):
        field["default"] = draw(held(control))
    if draw(st.sampled_from([True, True, False])):
        field["rule"] = draw(rules(control))
    return field


@st.composite
def documents(draw: st.DrawFn, least: int = 0) -> dict[str, Any]:
    """The document of a sound schema of up to five fields."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=least, max_size=5))
    return {"groups": [{"name": "g", "label": "G"}], "fields": [draw(fields(name)) for name in names]}


def schemas(least: int = 0) -> st.SearchStrategy[FormSchema]:
    """Sound schemas of at least so many fields."""
    return documents(least).map(_parsed)


def answers(schema: FormSchema) -> st.SearchStrategy[dict[str, Value | None]]:
    """Changes that forms of the schema accept, in any order, `None` among them."""
    by_name: dict[str, st.SearchStrategy[Any]] = {
        field.name: st.none() | held(str(field.__struct_config__.tag)) for field in schema.fields
    }
    chosen = st.lists(st.sampled_from(sorted(by_name)), unique=True) if by_name else st.just([])
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: by_name[name] for name in names}))


def json_values() -> st.SearchStrategy[Any]:
    """JSON values of any shape."""
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    )


def junk() -> st.SearchStrategy[Any]:
    """Values of the kinds that hurt: not JSON, of subclasses, cyclic, deep, huge, half a surrogate pair."""
    return json_values() | st.sampled_from(MAKERS).map(lambda make: make())


class Angry(str):
    """A text that will not be looked at."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError

    def __len__(self) -> int:
        raise ZeroDivisionError

    def strip(self, *_: object) -> str:
        raise ZeroDivisionError

    __hash__ = str.__hash__


class Sulky(dict[Any, Any]):
    """A record that will not be walked."""

    def items(self) -> Any:
        raise ZeroDivisionError

    def get(self, *_: object) -> Any:
        raise ZeroDivisionError


def _cyclic() -> Any:
    cycle: dict[str, Any] = {"control": "text", "name": "a", "fields": []}
    cycle["fields"].append(cycle)
    cycle["meta"] = cycle
    return cycle


def _deep() -> Any:
    deep: Any = {}
    for level in range(5_000):
        deep = {"fields": deep, "meta": deep, "rule": deep} if level % 2 else [deep]
    return deep


def _doubled() -> Any:
    doubled: Any = []
    for _ in range(100):
        doubled = [doubled, doubled]
    return {"k": doubled}


MAKERS: list[Callable[[], Any]] = [
    _cyclic,
    _deep,
    _doubled,
    lambda: Angry("text"),
    lambda: Sulky(control="text"),
    lambda: {Angry("control"): "text"},
    lambda: float("nan"),
    lambda: float("inf"),
    lambda: 10**400,
    lambda: 9007199254740993,
    lambda: "\ud800",
    lambda: {"\udfff": "\ud800"},
    lambda: b"bytes",
    lambda: (1, 2),
    lambda: {1, 2},
    lambda: {1: 2},
    lambda: {"__proto__": 1},
    lambda: ["x"] * 1_025,
    lambda: "x" * 65_537,
    object,
    lambda: object,
]


def _parsed(document: Any) -> FormSchema:
    schema = parse_form(document)
    assert schema is not None, document
    return schema
