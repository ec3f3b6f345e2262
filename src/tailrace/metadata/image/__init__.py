"""The metadata image: immutable, and the deltas that make the next one."""
