"""Which offsets a query reads, and how they are cut into tasks."""
