"""Requests about the cluster: versions, brokers, quorum, features, log directories."""
