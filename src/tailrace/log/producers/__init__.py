"""State of idempotent and transactional producers: sequence checks, snapshots, replay."""
