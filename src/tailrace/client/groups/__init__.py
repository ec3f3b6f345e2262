"""Groups of a cluster: describe, offsets, reset."""
