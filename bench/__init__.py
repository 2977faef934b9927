"""What greenroom costs; `python -m bench NAME` measures the figures of one subject against their goals.

How to write one, say `bench/mailbox.py`: a function for each figure, under one of the decorators of `harness`. Names
and goals stand in `goals.toml`; a figure of `NAME` that no function declares counts as not met.

`@rate("mailbox/tell")` on a function, plain or async, that does a round and returns operations per second. Its ratio
is that to the checkpoints per second measured right before and after it.

`@cost("waits/refuse-10k")` on one that returns the seconds of one operation. The value is how many checkpoints take as
long.

`@times("actor/ask-1-vs-pykka", against=pykka_ask)` on one that, like the one it is compared with, returns a
number in any unit: the value is how many times the other's it is. Without `against` it returns the value itself. The
rounds of both alternate.

`@memory("memory/idle-terminal", count=100_000)` on an async function of (count, measure): it builds so many things and,
with all of them alive, calls `measure()` once. It runs in a process of its own. The value is the whole resident memory
of that process in KB, divided by the count.

A round takes a tenth of a second or so, plus what has to be built for it; the five rounds of all figures of a name have
sixty seconds. Each call is a `trio.run` of its own with the usual clock. Inputs are read with `workload(name)` from
`workloads/`.
"""
