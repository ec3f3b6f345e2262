"""`tailrace cluster` and `tailrace migrate`."""
