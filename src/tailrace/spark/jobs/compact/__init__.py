"""`tailrace job compact`."""
