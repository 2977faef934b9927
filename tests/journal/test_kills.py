"""A process killed at any instant: the file opens again, with all that was acknowledged and nothing by half."""

from __future__ import annotations

from tests.journal.kill_run import SUITE, kill


def test_a_killed_writer_loses_nothing_that_was_acknowledged() -> None:
    failures, heard = kill(SUITE, 0)
    assert failures == []
    assert min(heard["event"], heard["gone"], heard["kept"], heard["early"]) > 0, f"they did too little: {heard}"
