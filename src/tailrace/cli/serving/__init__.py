"""`tailrace serve`, and commands that look at a running broker."""
