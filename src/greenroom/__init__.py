"""greenroom: agents, people and workflow runs ask each other whole forms, and nobody waits in a circle."""
