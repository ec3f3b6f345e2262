"""Metrics of requests, connections and the process."""
