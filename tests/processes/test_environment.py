"""What a command finds in its environment."""

from __future__ import annotations

import pytest

from greenroom.actors.process import scrubbed


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "Monkey",
        "client_secret",
        "GITHUB_TOKEN",
        "tokens",
        "PGPASSWORD",
        "greenroom_home",
        "GREENROOM_X",
    ],
)
def test_what_may_be_secret_and_what_is_greenrooms_own_is_left_out(name: str) -> None:
    assert name not in scrubbed({name: "1", "PATH": "/bin"})
    assert scrubbed({name: "1"}, {name: "2"})[name] == "2", "it was said to be meant"


def test_the_rest_stays_and_nobody_is_expected_to_read_along() -> None:
    assert scrubbed({"PATH": "/bin", "TERM": "xterm", "PAGER": "less"}) == {
        "PATH": "/bin",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GREENROOM_SHELL": "1",
    }
