"""`tailrace job replay`."""
