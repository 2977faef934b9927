"""The kernel: actors, mailboxes, the tree, the wait-for graph, deadlines, the bus and the tool registry."""
