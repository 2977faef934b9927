"""Recorded cases: what came out for an input once, against what greenroom gives for it now.

`python -m tests.conformance AREA [FILE]` runs a file of cases through the area's module in `areas`. The parts:

- `runner`: reads a file, runs each case under a limit of ten seconds, and judges the answer
- `expansion`: the abbreviations that an input may hold
- `comparison`: when an answer counts as equal to a record
- `translations`: names that greenroom has changed, each with the place where it applies
- `departures`: the rules of `departures.toml` (answers that differ on purpose) and `additions.toml` (members that are
  not compared, or as sets), with the `predicates` and `expects` that they name
- `recorded`: what several areas need to write an answer in the recorded form (errors, placeholders, fixtures)
"""
