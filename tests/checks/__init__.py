"""Tests of what the others rest on: a comparison that is too kind, or a wrong count, would hide failures."""
