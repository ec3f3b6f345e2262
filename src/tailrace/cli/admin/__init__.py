"""Commands about topics, configs, offsets, groups and transactions of a cluster."""
