"""`tailrace job load`."""
