"""The two ways to wait: for local state (purgatory) and for another node (outbox)."""
