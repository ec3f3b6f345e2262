"""`tailrace job export`."""
