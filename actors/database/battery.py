"""Whether a driver of a program's own keeps to the rules that databases rest on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from greenroom.actors.database.plain import Driver
from greenroom.protocol.database import Key, Row, expand_tables
from greenroom.protocol.errors import DatabaseError

__all__ = ["check_driver"]

_TABLES: Final = tuple(
    expand_tables(
        {
            "texts": {"columns": {"id": "string", "v": {"type": "string", "optional": True}}},
            "numbers": {"columns": {"id": "integer", "v": {"type": "number", "optional": True}}},
        }
    ).values()
)

_KEYS: Final[tuple[tuple[str, Sequence[Key], Sequence[Key]], ...]] = (
    (
        "texts",
        ("b", "", "\U0001f600", "a", "\ue000", "10", "9", "B"),
        ("", "10", "9", "B", "a", "b", "\U0001f600", "\ue000"),
    ),
    ("numbers", (10, 9, -1, 1, 2**62), (-1, 1, 9, 10, 2**62)),
)

_INSERTERS: Final = 8


def check_driver(make: Callable[[], Driver]) -> None:
    """Try a driver of two tables; `make` gives a fresh and empty one for each trial.

    Raises `DatabaseError` CONFORMANCE that names the rule which it breaks. It blocks, and starts threads.
    """
    for trial in _TRIALS:
        driver = make()
        driver.open(_TABLES)
        try:
            trial(driver)
        finally:
            driver.close()


def _copies(driver: Driver) -> None:
    given: Row = {"id": "a", "v": "kept"}
    driver.write("texts", "a", given)
    given["v"] = "changed after it was given"
    for got in (driver.read("texts", "a"), *driver.scan("texts")):
        _demand(got == {"id": "a", "v": "kept"}, "rows are copied in and out", got)
        assert got is not None, "it equals a row"
        got["v"] = "changed after it was got"
    _demand(driver.read("texts", "a") == {"id": "a", "v": "kept"}, "rows are copied in and out")


def _writes(driver: Driver) -> None:
    _demand(driver.read("texts", "a") is None, "a row that is not there reads as None")
    _demand(driver.insert("texts", "a", {"id": "a", "v": "first"}), "a new row can be inserted")
    _demand(not driver.insert("texts", "a", {"id": "a", "v": "second"}), "a key is inserted once")
    _demand(driver.read("texts", "a") == {"id": "a", "v": "first"}, "a refused insert changes nothing")
    driver.write("texts", "a", {"id": "a"})
    _demand(driver.read("texts", "a") == {"id": "a"}, "a write replaces the whole row")
    driver.write("texts", "5", {"id": "5"})
    _demand(driver.read("texts", 5) is None, "keys are told apart by type")
    _demand(driver.delete("texts", "a"), "a delete tells that there was a row")
    _demand(not driver.delete("texts", "a"), "a delete tells that there was none")


def _order(driver: Driver) -> None:
    for table, keys, ascending in _KEYS:
        for key in keys:
            driver.write(table, key, {"id": key})
        told = list(driver.keys(table))
        _demand(told == list(ascending), "keys are ascending", told)
        told = [row["id"] for row in driver.scan(table)]
        _demand(told == list(ascending), "rows are scanned by key", told)


def _clearing(driver: Driver) -> None:
    driver.write("texts", "a", {"id": "a"})
    driver.write("numbers", 1, {"id": 1})
    driver.clear("texts")
    _demand(list(driver.keys("texts")) == [], "a cleared table is empty")
    _demand(list(driver.keys("numbers")) == [1], "clearing a table leaves the others alone")


def _winner(driver: Driver) -> None:
    told: list[bool] = []
    together = threading.Barrier(_INSERTERS)

    def insert() -> None:
        together.wait()
        told.append(driver.insert("texts", "a", {"id": "a"}))

    threads = [threading.Thread(target=insert) for _ in range(_INSERTERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _demand(sorted(told) == [False] * (_INSERTERS - 1) + [True], "of simultaneous inserts one succeeds", told)


def _rollback(driver: Driver) -> None:
    driver.write("texts", "kept", {"id": "kept", "v": "before"})
    driver.write("texts", "gone", {"id": "gone"})
    restore = driver.snapshot()
    driver.write("texts", "kept", {"id": "kept", "v": "after"})
    driver.delete("texts", "gone")
    driver.insert("texts", "new", {"id": "new"})
    driver.write("numbers", 1, {"id": 1})
    restore()
    told = [*driver.scan("texts"), *driver.scan("numbers")]
    _demand(told == [{"id": "gone"}, {"id": "kept", "v": "before"}], "a snapshot puts everything back", told)


_TRIALS: Final = (_copies, _writes, _order, _clearing, _winner, _rollback)


def _demand(holds: bool, rule: str, told: object = None) -> None:
    if not holds:
        seen = "" if told is None else f": it gave {told!r}"
        raise DatabaseError("CONFORMANCE", f"the driver breaks a rule, {rule}{seen}", {"rule": rule})
