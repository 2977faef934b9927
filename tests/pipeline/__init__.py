"""Policies on tool calls: every stage of the pipeline, and the policies that come with it."""
