"""The parts put together, still synchronous: requests in, replies out. May import: fetch, replication, metadata and
below."""
