"""`tailrace job verify` and `tailrace job reindex`."""
