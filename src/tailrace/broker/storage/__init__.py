"""Background work on log directories, and hosting the partitions that the metadata assigns to this broker."""
