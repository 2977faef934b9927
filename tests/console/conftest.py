"""Somebody at a terminal of their own, and a gateway to attach to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.console.desk import Desk, open_desk
from tests.console.person import Person, seated


@pytest.fixture
def person() -> Iterator[Person]:
    """Somebody who sits at a pseudo-terminal."""
    with seated() as person:
        yield person


@pytest.fixture
def cooked(person: Person) -> list[Any]:
    """The mode of the person's terminal before anything has run there."""
    return person.mode


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """A gateway with the terminal `ops`."""
    async with open_desk() as desk:
        yield desk
