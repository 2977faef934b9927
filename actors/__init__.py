"""What lives in the tree, and the composition: terminals, the gateway, the client, the command line."""
