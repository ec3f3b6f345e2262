"""Requests about topics, partitions and their replicas."""
