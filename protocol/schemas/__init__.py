"""JSON Schema from structs, and the gates that untrusted values pass."""
