"""`tailrace job profile`."""
