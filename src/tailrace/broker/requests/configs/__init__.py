"""Requests about configs, client quotas and telemetry subscriptions."""
