"""HTTP: the metrics endpoint, and keys of identity providers."""
