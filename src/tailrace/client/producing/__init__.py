"""Writing record batches, with idempotence and transactions."""
