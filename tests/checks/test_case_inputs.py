"""What the input of a recorded case stands for: abbreviations, changed names, placeholders."""

from __future__ import annotations

import math

import pytest

from tests.conformance.expansion import a_function, expand
from tests.conformance.predicates import field_gets_lossy_digits, is_refused_pattern
from tests.conformance.recorded import Placeholders
from tests.conformance.translations import translate


def test_a_repeated_string() -> None:
    assert expand({"values": {"a": {"$repeat": ["ab", 3]}}}) == {"values": {"a": "ababab"}}


def test_a_list_of_copies_with_their_index() -> None:
    template = {"name": "f%i", "help": {"$repeat": ["%i", 2]}, "n": 1}
    assert expand({"$list": [template, 2]}) == [
        {"name": "f0", "help": "00", "n": 1},
        {"name": "f1", "help": "11", "n": 1},
    ]


def test_an_inner_list_has_an_index_of_its_own() -> None:
    assert expand({"$list": [{"name": "%i", "inner": {"$list": ["v%i", 2]}}, 2]}) == [
        {"name": "0", "inner": ["v0", "v1"]},
        {"name": "1", "inner": ["v0", "v1"]},
    ]


def test_the_copies_of_a_list_are_apart() -> None:
    first, second = expand({"$list": [{"a": []}, 2]})
    first["a"].append(1)
    assert second == {"a": []}


def test_numbers_beyond_json_and_functions() -> None:
    assert expand([{"$number": "Infinity"}, {"$number": "-Infinity"}]) == [math.inf, -math.inf]
    assert math.isnan(expand({"$number": "NaN"}))
    assert expand({"$function": True}) is a_function


def test_an_object_with_a_second_member_is_no_abbreviation() -> None:
    assert expand({"$repeat": ["a", 2], "b": 1}) == {"$repeat": ["a", 2], "b": 1}


def test_a_translation_applies_at_its_place_only() -> None:
    output = {"steps": [{"answer": {"success": False, "error": {"reason": "terminal"}}}, {"reason": "terminal"}]}
    assert translate("terminal.script", "output", output) == {
        "steps": [{"answer": {"success": False, "error": {"reason": "target"}}}, {"reason": "terminal"}]
    }
    assert translate("terminal.script", "input", output) == output
    assert translate("form.parse", "output", output) == output


def test_a_translated_name_keeps_its_value() -> None:
    task = {"id": "t", "run": {"run": 1}}
    given = {"definition": {"run": 2, "phases": [{"run": 3, "tasks": [task]}]}}
    assert translate("workflow.run", "input", given) == {
        "definition": {"run": 2, "phases": [{"run": 3, "tasks": [{"id": "t", "behavior": {"run": 1}}]}]}
    }


def test_placeholders_are_issued_in_order_of_appearance() -> None:
    placeholders = Placeholders()
    assert [placeholders.issue("x"), placeholders.issue("y"), placeholders.issue("x")] == ["$1", "$2", "$1"]
    assert placeholders.write({"id": "y", "ids": ["x", "z"]}) == {"id": "$2", "ids": ["$1", "z"]}
    assert placeholders.read(["$1", "$3", "missing"]) == ["x", "$3", "missing"]


@pytest.mark.parametrize("source", [r"(?=b)", r"a(?!b)", r"(?<=a)b", r"(?<!a)b", r"(a)\1", r"(?<n>a)\k<n>", r"(a)\\\1"])
def test_patterns_that_look_around_or_back(source: str) -> None:
    assert is_refused_pattern(source)


@pytest.mark.parametrize(
    "source",
    [r"[(?=]", r"\(?=", r"(?:a)\1", r"\1", r"(a)\2", r"(a)[\1]", r"\k<n>", r"(a)\\1", r"[^\]](?<n>a)", "", None],
)
def test_patterns_that_do_not(source: object) -> None:
    assert not is_refused_pattern(source)


@pytest.mark.parametrize(
    ("text", "lossy"),
    [("9007199254740993", True), ("9007199254740992", False), ("1e21", False), ("0.1", False), ("5", False)],
)
def test_digits_that_no_double_prints_back(text: str, lossy: bool) -> None:
    assert field_gets_lossy_digits({"field": {"control": "number", "name": "n"}, "input": text}) is lossy
    assert not field_gets_lossy_digits({"field": {"control": "text", "name": "n"}, "input": text})
