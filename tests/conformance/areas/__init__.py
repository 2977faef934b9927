"""One module an area. How to write one, say `areas/forms.py`:

It exposes `OPS`, a mapping from the name of an op to a function of the case's `input`::

    OPS: Mapping[str, Callable[[Any], Any | Awaitable[Any]]] = {"form.matches": matches, "form.script": script}

- The input is already expanded (no `$repeat`, `$list`, `$number`; `{"$function": true}` is a Python function) and
  translated (`translations.py`). The function may keep it and change it.
- The result is the `output` in the recorded form, made of dict, list, str, int, float, bool and None. A member that is
  `None` counts as absent. Whatever the function raises is a failure of the case: errors that a case may record are
  turned into data with `recorded.error`.
- An async function runs in a `trio.run` of its own, with a `trio.testing.MockClock` at 0 that only the case moves:
  `await tests.clock.advance(ms)` for a step `advance`, `await tests.clock.settle()` to wait for everything that a step
  set off. It may open a runtime, and must leave nothing behind.
- Ids: `recorded.Placeholders` writes the real ones as `$1`, `$2`, ... and turns them back in the steps of a script.
- Files that belong to the cases are found with `recorded.fixture(name)`.

An area drives public names only and keeps no state of what it tests.
"""
