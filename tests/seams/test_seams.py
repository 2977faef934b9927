"""Who fills a seam, who is chosen, and who is told whose fault it is."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from greenroom.protocol.errors import ConfigError, GreenroomError, SeamError
from greenroom.runtime.seams import OURS, Seam


def refusal(seam: Seam[int], name: str | None = None) -> SeamError:
    with pytest.raises(SeamError) as refused:
        seam.choose(name)
    return refused.value


def test_one_of_several_providers_is_chosen_by_its_name() -> None:
    seam = Seam[int]("numbers")
    seam.provide("one", 1)
    seam.provide("two", 2, by="somebody 1.0")
    assert (seam.choose("one"), seam.choose("two")) == (1, 2)
    assert (seam.by("one"), seam.by("two")) == (OURS, "somebody 1.0")


def test_a_single_provider_needs_no_choice_and_of_several_nobody_guesses() -> None:
    seam = Seam[int]("numbers")
    close = seam.provide("one", 1)
    assert seam.choose() == 1
    seam.provide("two", 2)
    ambiguous = refusal(seam)
    assert (ambiguous.code, ambiguous.context["known"]) == ("PROVIDER_AMBIGUOUS", ["one", "two"])
    assert "one, two" in ambiguous.message
    close()
    assert seam.choose() == 2


def test_what_nobody_provides_is_refused_with_what_there_is() -> None:
    seam = Seam[int]("numbers")
    assert refusal(seam).code == "NO_PROVIDER"
    seam.provide("one", 1)
    missing = refusal(seam, "two")
    assert (missing.code, missing.context["known"]) == ("NO_PROVIDER", ["one"])
    assert "greenroom.numbers" in missing.message, "it says how one is added"


def test_a_name_is_given_once() -> None:
    seam = Seam[int]("numbers")
    seam.provide("one", 1, by="ann 1.0")
    with pytest.raises(SeamError, match=r"ann 1\.0 and of bob 2\.0") as refused:
        seam.provide("one", 2, by="bob 2.0")
    assert refused.value.code == "DUPLICATE_PROVIDER"
    assert seam.choose() == 1


def test_a_second_sole_provider_is_refused_until_the_first_has_ended() -> None:
    seam = Seam[int]("places", "sole")
    close = seam.provide("here", 1)
    with pytest.raises(SeamError, match="here of greenroom") as refused:
        seam.provide("there", 2)
    assert refused.value.code == "DUPLICATE_PROVIDER"
    close()
    seam.provide("there", 2)
    close()
    assert seam.choose() == 2, "who has ended takes nothing away from who came after"


def test_a_provider_is_loaded_when_it_is_chosen_and_a_broken_one_is_told_with_its_owner() -> None:
    seam = Seam[int]("numbers")
    loaded: list[str] = []

    def load() -> int:
        loaded.append("now")
        raise ImportError("no module named nothing")

    seam.provide_from("one", load, by="ann 1.0")
    seam.provide("two", 2)
    assert seam.choose("two") == 2
    assert loaded == []
    broken = refusal(seam, "one")
    assert (broken.code, broken.context["by"]) == ("BROKEN_PROVIDER", "ann 1.0")
    assert "no module named nothing" in broken.message


def test_an_error_of_ours_passes_as_it_is() -> None:
    seam = Seam[int]("numbers")
    said = ConfigError("KEY", "There is no key.")

    def load() -> int:
        raise said

    seam.provide_from("one", load)
    with pytest.raises(GreenroomError) as refused:
        seam.choose()
    assert refused.value is said


class Filling(RuleBasedStateMachine):
    """Providers come and go in any order, against a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.seams = {"named": Seam[int]("n"), "sole": Seam[int]("s", "sole")}
        self.there: dict[str, dict[str, int]] = {"named": {}, "sole": {}}
        self.closes: list[tuple[str, str, int, object]] = []
        self.number = 0

    kinds = st.sampled_from(["named", "sole"])
    names = st.sampled_from(["a", "b", "c"])

    @rule(kind=kinds, name=names)
    def provide(self, kind: str, name: str) -> None:
        self.number += 1
        there = self.there[kind]
        if name in there or (kind == "sole" and there):
            with pytest.raises(SeamError, match="of greenroom"):
                self.seams[kind].provide(name, self.number)
            return
        close = self.seams[kind].provide(name, self.number)
        there[name] = self.number
        self.closes.append((kind, name, self.number, close))

    @rule(choice=st.integers(0, 99))
    def close(self, choice: int) -> None:
        if self.closes:
            kind, name, number, close = self.closes[choice % len(self.closes)]
            assert callable(close)
            close()  # again and again, for some
            if self.there[kind].get(name) == number:
                del self.there[kind][name]

    @rule(kind=kinds, name=names | st.none())
    def choose(self, kind: str, name: str | None) -> None:
        there = self.there[kind]
        found = there.get(name) if name is not None else next(iter(there.values())) if len(there) == 1 else None
        if found is not None:
            assert self.seams[kind].choose(name) == found
        else:
            assert refusal(self.seams[kind], name).code == (
                "PROVIDER_AMBIGUOUS" if name is None and there else "NO_PROVIDER"
            )
        assert self.seams[kind].names == tuple(there)


TestFilling = Filling.TestCase
TestFilling.settings = settings(max_examples=50, stateful_step_count=20, deadline=None)
