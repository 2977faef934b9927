"""What a handler raises to say how its failure is to be taken. Any other exception is a failure like every other."""

from __future__ import annotations

__all__ = ["Permanent", "RetryAfter"]


class Permanent(Exception):
    """No further attempt would help: the task fails at once, whatever retries it has left."""


class RetryAfter(Exception):
    """The attempt failed, and the next one should begin `seconds` from now, instead of when the backoff says."""

    def __init__(self, seconds: float, message: str = "") -> None:
        super().__init__(message or f"Try again in {seconds:g} s.")
        if not seconds >= 0:
            raise ValueError(f"a rest is 0 seconds or more, not {seconds}")
        self.seconds = seconds
