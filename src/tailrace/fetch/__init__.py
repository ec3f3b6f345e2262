"""The Fetch path, from a request to the slices of files that answer it. May import: replication and below."""
