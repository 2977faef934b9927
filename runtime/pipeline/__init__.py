"""The track of stages around every tool call, where policies are hooked in without touching tool or caller.

- `pipeline`: the events, and what is hooked in where
- `execution`, `batch`: one call's way through the stages, and several calls'
- `invocations`, `verdicts`, `outcomes`: what policies see and say
- `approvals`, `guards`, `recorder`: who else has a say, or takes it down
- `handling`: what a tool says about its calls
- `snapshot`: frozen copies of arguments and values
"""
