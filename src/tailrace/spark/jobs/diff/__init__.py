"""`tailrace job diff`."""
