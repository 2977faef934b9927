"""The ECMAScript dialect: what a source means, what is refused, where matches are."""

from __future__ import annotations

import re
import time

import pytest

from greenroom.protocol.errors import PatternError
from greenroom.protocol.patterns import compile_pattern


def spans(source: str, text: str, *, ignore_case: bool = False) -> list[tuple[int, int]]:
    return list(compile_pattern(source, ignore_case=ignore_case).spans(text))


def refusal(source: str, limit: int | None = 256) -> PatternError:
    with pytest.raises(PatternError) as caught:
        compile_pattern(source, limit=limit)
    return caught.value


@pytest.mark.case("forms", 10)
def test_digits_words_and_ends_are_ascii_and_strict() -> None:
    assert compile_pattern(r"\d").matches("a1b")
    assert not compile_pattern(r"\d").matches("\u0663")
    assert not compile_pattern("^a$").matches("a\n")
    assert not compile_pattern(r"^\w+$").matches("é")
    assert compile_pattern("").matches("")
    assert compile_pattern("").matches("anything")


@pytest.mark.case("forms", 11)
def test_white_space_is_the_set_of_ecmascript() -> None:
    assert compile_pattern(r"^\s$").matches("\ufeff")
    assert not compile_pattern(r"^\s$").matches("\x1f")
    for space in "\t\n\v\f\r \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000":
        assert compile_pattern(r"^\s$").matches(space)
        assert not compile_pattern(r"\S").matches(space)
    for other in "\x1c\x85\u180e\u200b":
        assert compile_pattern(r"^\S$").matches(other)


@pytest.mark.parametrize(
    ("source", "found", "missed"),
    [
        ("^.$", ["a", "\x85", "\0", "\ud83d"], ["", "\n", "\r", "\u2028", "\u2029", "😀"]),
        ("^..$", ["😀", "ab", "\udc00\ud83d"], ["😀😀", "\n\n"]),
        ("^[^]$", ["a", "\n", "\u2028", "\ud83d"], ["", "😀"]),
        ("[]", [], ["", "a", "]"]),
        ("[^]{2}", ["\n\n", "😀"], ["a"]),
        ("^]{}}$", ["]{}}"], ["]}"]),
        ("^x{2$", ["x{2"], ["xx"]),
        ("^a{,3}$", ["a{,3}"], ["", "aaa"]),
        ("^{,3}$", ["{,3}"], [""]),
        ("^{a}$", ["{a}"], ["a"]),
        (r"^\A\Z\_\-\/$", ["AZ_-/"], [""]),
        (r"^\p{2}\u{3}$", ["ppuuu"], ["p"]),
        (r"^\x41\u0042\x4\u004$", ["ABx4u004"], ["AB"]),
        (r"^\0\00\012\101\377\400$", ["\0\0\nAÿ 0"], ["0"]),
        (r"^\08\8\9$", ["\x008" + "89"], ["8"]),
        (r"^\cJ\cj$", ["\n\n"], ["cJcj"]),
        (r"^\c1\c$", [r"\c1\c"], ["\x11"]),
        (r"^[\c1][\c_][\c*][\c]$", ["\x11\x1f*c", "\x11\x1f\\\\", "\x11\x1fcc"], ["1_*c"]),
        (r"^[\b]$", ["\b"], ["b"]),
        (r"^[\B\k\1]+$", ["Bk\x01"], ["1"]),
        (r"^[\d-x]+$", ["1-x"], ["w"]),
        (r"^[a-\d]+$", ["a-1"], ["b"]),
        (r"^[\d-a-z]+$", ["1-az"], ["b"]),
        ("^[--/]+$", ["-./"], ["0"]),
        ("^[a-]+$", ["a-"], ["b"]),
        ("^[-a]+$", ["a-"], ["b"]),
        ("^[]a]$", [], ["]a]", "a"]),
        (r"^[\w-]+$", ["a-b_1"], ["é"]),
        (r"^[^\W]+$", ["a_1"], ["-"]),
        ("^[😀]$", ["\ud83d", "\ude00"], ["😀", "a"]),
        ("^😀*$", ["😀", "\ud83d", "\ud83d\ude00\ude00"], ["😀😀", ""]),
        ("^\ud83d\ude00$", ["😀"], ["\ud83d"]),
        (r"^\ud83d\ude00$", ["😀"], ["\ude00"]),
        ("^[\\ud800-\\udfff]{2}$", ["😀", "\ud800\ud800"], ["aa"]),
        ("^[\ud7fe-\ue001]+$", ["\ud7ff\ud800\udfff\ue000"], ["\ue002", "\ud7fd"]),
        (r"^\k<a>$", ["k<a>"], ["a"]),
        (r"^(a)\2$", ["a\x02"], ["aa"]),
        (r"^\1$", ["\x01"], ["1", ""]),
        ("^(?<year>\\d+)-(?<$_é\\u0061>b)$", ["12-b"], ["12-"]),
        ("^(?:a|ab)(?:c|bcd)(d*)$", ["abcd"], ["abd"]),
        (r"\bfoo\b", ["a foo b", "éfooé"], ["afoo", "foo_"]),
        (r"^\B$", [""], ["a"]),
        (r"\B", ["é", "aa", "-"], ["aéa", "a", "a😀a"[:1]]),
        ("a$b", [], ["ab", "a\nb"]),
        ("$^", [""], ["a"]),
        ("^(?:a|^)b", ["ab", "b"], ["cb"]),
        ("a|", ["b"], []),
        ("^()$", [""], ["a"]),
        ("^(|a){0,0}b$", ["b"], ["ab"]),
        ("^a{2}b{1,}c{0,1}d{2,3}?$", ["aabdd", "aabbbcddd"], ["abdd", "aabdddd"]),
        ("^a{1,99999999999}$", ["a", "a" * 3000], [""]),
    ],
)
def test_the_dialect(source: str, found: list[str], missed: list[str]) -> None:
    pattern = compile_pattern(source)
    for text in found:
        assert pattern.matches(text), text
        assert next(pattern.spans(text), None) is not None, text
    for text in missed:
        assert not pattern.matches(text), text
        assert next(pattern.spans(text), None) is None, text


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("b", "a😀b", [(3, 4)]),
        (".", "a😀b", [(0, 1), (1, 2), (2, 3), (3, 4)]),
        ("", "hé😀", [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]),
        ("a*", "baa", [(0, 0), (1, 3), (3, 3)]),
        (".*", "ab", [(0, 2), (2, 2)]),
        ("a+?", "aab", [(0, 1), (1, 2)]),
        ("aa", "aaa", [(0, 2)]),
        ("^a", "aa", [(0, 1)]),
        ("$", "a\nb", [(3, 3)]),
        (r"\b", " é a ", [(3, 3), (4, 4)]),
        (r"\B", "aéa", []),
        (r"\B", "éa é", [(0, 0), (3, 3), (4, 4)]),
        (r"\Ba|\Bb?", "éé", [(0, 0), (1, 1), (2, 2)]),
        ("x\ny", "x\ny\nx", [(0, 3)]),
        ("a|ab", "abab", [(0, 1), (2, 3)]),
        ("(?:|a)*", "aab", [(0, 2), (2, 2), (3, 3)]),
        ("(?:|a)+", "aab", [(0, 2), (2, 2), (3, 3)]),
        ("(?:|a)?", "a", [(0, 1), (1, 1)]),
        ("(?:|a)*?", "a", [(0, 0), (1, 1)]),
        ("(?:|a){2}", "aa", [(0, 0), (1, 1), (2, 2)]),
        ("(?:|a){2,3}", "aa", [(0, 1), (1, 2), (2, 2)]),
        ("(?:a?|b){1,}", "ab", [(0, 2), (2, 2)]),
        ("(a*)*", "b", [(0, 0), (1, 1)]),
        ("(?:a*?)*b", "aab", [(0, 3)]),
    ],
)
def test_spans_are_those_of_a_global_search(source: str, text: str, expected: list[tuple[int, int]]) -> None:
    assert spans(source, text) == expected


def test_spans_are_found_one_by_one() -> None:
    found = compile_pattern("a").spans("a" * 1_000_000)
    assert [next(found), next(found)] == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("source", "text", "columns"),
    [
        ("ß", "ßẞ SS", [0]),
        ("i", "İstanbul ı I i", [11, 13]),
        ("k", "kK\u212a", [0, 1]),
        ("\u212a", "kK\u212a", [2]),
        ("b|s", "sS\u017f", [0, 1]),
        ("b|[Kk]", "kK\u212a", [0, 1]),
        ("[^x]", "xXy", [2]),
        ("[a-c]", "abdABD", [0, 1, 3, 4]),
        (r"[\W]", "kK\u212a\u017f", [2, 3]),
        (r"\w", "kK\u212a\u017f", [0, 1]),
        ("σ", "Σσς", [0, 1, 2]),
        ("ǆ", "Ǆǅǆ", [0, 1, 2]),
        ("\u00b5", "\u00b5\u03bc\u039c", [0, 1, 2]),
        (r"\x41", "aA", [0, 1]),
        ("𐐀", "𐐀𐐨", [0]),
    ],
)
def test_case_is_ignored_as_canonicalize_says(source: str, text: str, columns: list[int]) -> None:
    assert [start for start, _ in spans(source, text, ignore_case=True)] == columns


def test_case_counts_unless_it_is_ignored() -> None:
    assert spans("[Ss]|b", "sS\u017fB") == [(0, 1), (1, 2)]


@pytest.mark.parametrize("source", ["a.b*(c)", "[x]{2}", "\\", "a\nb\u2028", "😀-\ud83d", "^$|?+/#& ~"])
def test_an_escaped_text_is_found_literally(source: str) -> None:
    assert spans(re.escape(source), f"..{source}..") == [(2, 2 + len(source.encode("utf-16-le", "surrogatepass")) // 2)]


@pytest.mark.parametrize(
    ("source", "position"),
    [
        *(("(", 0), ("a(b", 1), (")", 0), ("(?:a))", 5), ("[", 0), ("a[b", 1), ("[^\\]", 0), ("\\", 0), ("a\\", 1)),
        *(("*a", 0), ("+", 0), ("a|?", 2), ("(*)", 1), ("a++", 2), ("a**", 2), ("a{1}{2}", 4), ("a???", 3)),
        *(("{1}", 0), ("{1,}", 0), ("({1,2})", 1), ("^*", 1), ("$+", 1), (r"\b?", 2), ("(?<=a)*", 6)),
        *(("a{2,1}", 1), ("[z-a]", 2), (r"[\x62-a]", 5), ("[😀-a]", 3)),
        *(("(?i)a", 0), ("(?i:a)", 0), ("(?#c)a", 0), ("(?P<n>a)", 0), ("(?>a)", 0), ("(?", 0)),
        *(
            ("(?<>a)", 3),
            ("(?<1>a)", 3),
            ("(?<a", 3),
            ("(?<a-b>c)", 3),
            ("(?<a>b)(?<a>c)", 7),
            ("(?<a>b)(?<\\u0061>c)", 7),
        ),
        *((r"(?<a>b)\k", 7), (r"(?<a>b)\k<c>", 7), (r"\k<c>(?<a>b)", 0), (r"(?<a>b)[\k]", 8), (r"(?<a>b)\k<a", 10)),
        *(("(?=a", 0), (r"(a)\1(", 5)),
    ],
)
def test_what_is_no_pattern_is_refused_at_its_place(source: str, position: int) -> None:
    error = refusal(source)
    assert error.code == "INVALID"
    assert error.context == {"position": position}
    assert str(position) in error.message


def test_a_missing_group_is_refused_with_the_names_there_are() -> None:
    assert "`year`, `month`" in refusal(r"(?<year>a)(?<month>b)\k<day>").message


@pytest.mark.parametrize(
    ("source", "construct", "position"),
    [("a(?=b)", "(?=", 1), ("(?!b)", "(?!", 0), ("(?<=b)c", "(?<=", 0), ("x|(?<!b)", "(?<!", 2), ("(?=a)*", "(?=", 0)],
)
def test_lookaround_is_refused_by_name_and_place(source: str, construct: str, position: int) -> None:
    error = refusal(source)
    assert (error.code, error.context) == ("LOOKAROUND", {"construct": construct, "position": position})
    assert construct in error.message


@pytest.mark.parametrize(
    ("source", "construct", "position"),
    [
        *((r"(a)\1", r"\1", 3), (r"\2(a)(b)", r"\2", 0), (r"(\1)+", r"\1", 1), (r"(a)(?=b)\1", "(?=", 3)),
        *((r"\k<n>(?<n>a)", r"\k<n>", 0), (r"(?<n>a)\k<n>*", r"\k<n>", 7), (r"(?<n>a)\1", r"\1", 7)),
    ],
)
def test_a_back_reference_is_refused_by_name_and_place(source: str, construct: str, position: int) -> None:
    error = refusal(source)
    assert error.code == ("LOOKAROUND" if construct == "(?=" else "BACKREFERENCE")
    assert error.context == {"construct": construct, "position": position}


@pytest.mark.parametrize(
    ("source", "text"),
    [(r"^(?:a)\1$", "a\x01"), (r"^\(a\)\1$", "(a)\x01"), (r"^[(]\1$", "(\x01"), (r"^[\](]\1$", "]\x01")],
)
def test_only_capturing_groups_can_be_referred_to(source: str, text: str) -> None:
    assert compile_pattern(source).matches(text)


def test_a_source_over_the_limit_is_refused_in_utf16_units() -> None:
    assert compile_pattern("😀" * 128).matches("😀" * 128)
    error = refusal("😀" * 128 + "a")
    assert (error.code, error.context) == ("LENGTH", {"length": 257, "limit": 256})
    assert compile_pattern("a" * 300, limit=None).matches("a" * 300)
    assert refusal("aaa", limit=2).code == "LENGTH"


@pytest.mark.parametrize(
    ("source", "found", "missed"),
    [
        ("^a{1001}$", ["a" * 1001], ["a" * 1000, "a" * 1002]),
        ("^a{1500,}$", ["a" * 1500, "a" * 4000], ["a" * 1499]),
        ("^[ab]{990,2500}?$", ["a" * 990, "b" * 2500], ["a" * 989, "a" * 2501]),
        ("^(?:ab{3}){600}$", ["abbb" * 600], ["abbb" * 599, "abbb" * 601]),
        ("^(?:a{50}){50}$", ["a" * 2500], ["a" * 2499, "a" * 2501]),
        ("^(?:a{1000}){3}b$", ["a" * 3000 + "b"], ["a" * 2999 + "b"]),
        ("^(?:a?){1200}$", ["", "a" * 1200], ["a" * 1201]),
        ("^.{0,5000}$", ["é" * 5000], ["a" * 5001]),
    ],
)
def test_counts_that_the_engine_refuses_are_taken_apart(source: str, found: list[str], missed: list[str]) -> None:
    pattern = compile_pattern(source)
    assert [pattern.matches(text) for text in found] == [True] * len(found)
    assert [pattern.matches(text) for text in missed] == [False] * len(missed)


def test_a_taken_apart_repeat_prefers_as_a_whole_one_does() -> None:
    text = "a" * 2000
    assert spans("a{0,1500}", text) == [(0, 1500), (1500, 2000), (2000, 2000)]
    assert spans("a{5,1500}?", "a" * 11) == [(0, 5), (5, 10)]
    assert spans("a{0,1500}?b", text[:1200] + "b") == [(0, 1201)]


@pytest.mark.parametrize(
    "source",
    [
        "a{5002}",
        "a{99999999999}",
        "a{" + "9" * 5000 + "}",
        "(?:a{100}){100}",
        "(?:a|ab){0,1500}?b",
        "(?:" + "a*" * 120 + ")*",
        "(?:(?:" + "a*" * 150 + "){2})*",
        "(?:(?:a?b?){9}c?){9}d?|(?:(?:(?:a?b?){30}c?){9}d?)*",
        "[" + "".join(chr(0x1000 + 0x3C1 * n) for n in range(60)) + "]{4000}",
        "(a" * 300 + ")" * 300,
        "a" * 100_000,
        r"\S" * 6000,
    ],
)
def test_a_pattern_with_no_program_of_reasonable_size_is_refused(source: str) -> None:
    error = refusal(source, limit=None)
    assert error.code == "REPEAT"
    assert "too large" in error.message


def test_too_much_work_is_refused_rather_than_begun() -> None:
    pattern = compile_pattern("a.{3000}c")
    assert pattern.matches("a" * 3001 + "c")
    with pytest.raises(PatternError) as caught:
        pattern.matches("a" * 60_000)
    assert caught.value.code == "REPEAT"


@pytest.mark.parametrize(
    "source", ["(a+)+$", "(a|a)*b", "(x(a+)+y)", "(a*)*$b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*x"]
)
@pytest.mark.parametrize("text", ["a" * 60 + "!", "a" * 60_000 + "!"], ids=["short", "long"])
def test_no_source_makes_matching_explode(source: str, text: str) -> None:
    began = time.perf_counter()
    pattern = compile_pattern(source)
    assert not pattern.matches(text)
    assert next(pattern.spans(text), None) is None
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize("source", ["a.{1000}c", "a[ab]{1000}c", "(?:a|b)*a(?:a|b){450}c", "a" + "." * 250 + "c"])
def test_the_heaviest_programs_are_bounded_on_the_longest_string(source: str) -> None:
    text = "".join("ab"[bin(n * 2654435761).count("1") % 2] for n in range(65_536))
    began = time.process_time()
    assert not compile_pattern(source).matches(text)
    assert time.process_time() - began < 2


def test_a_source_is_compiled_once() -> None:
    assert compile_pattern("once more") is compile_pattern("once more")
    assert compile_pattern("once more") is not compile_pattern("once more", ignore_case=True)
