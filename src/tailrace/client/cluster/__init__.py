"""A cluster as one thing to ask: metadata, state, quorum, replicas."""
