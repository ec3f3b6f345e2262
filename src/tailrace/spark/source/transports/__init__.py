"""Where batches come from: segment files, or a cluster over the wire."""
