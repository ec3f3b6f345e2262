"""Log directories: the logs of all partitions, locks, checkpoints and background flushes."""
