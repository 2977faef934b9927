"""Somebody at a terminal of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.console.person import Person, seated


@pytest.fixture
def person() -> Iterator[Person]:
    """Somebody who sits at a pseudo-terminal."""
    with seated() as person:
        yield person
