"""The commands, one module for each group of them.

A command is an async function that returns its exit code: its parameters are the words and options, its docstring is
the help. Write it into the module of its group, or into a new one, and name it in `greenroom.actors.cli.app`; what
several take (`--url`, `--json`, a file of JSON) is in `options`, and `reach` connects to the gateway.
"""
