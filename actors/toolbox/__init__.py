"""The tools that a model calls, one module a tool."""
