"""State machines, kill runs and soaks; `python -m tests.stress NAME` runs one any number of times.

How to write one, say `tests/stress/terminals.py`. It exposes two names:

- `run(examples, seed) -> Outcome` plays so many examples from this seed and tells what failed.
- `SUITE`, the number of examples that the test suite plays (300 for a machine).

A Hypothesis machine gets both from the frame::

    class TerminalMachine(RuleBasedStateMachine): ...

    SUITE = 300
    run = machine(TerminalMachine, steps=50)

A kill run or a soak has a loop of its own: it draws everything that is random from `random.Random(seed)`, and returns
`Outcome(examples, failures)` with a `Failure` for each example that went wrong, which says what was done.

Rules that need a live trio run call it through `driver.Driver`. The names that exist are `outcome.NAMES`; a module
that is there is picked up by the command and by `test_machines.py` alike.
"""
