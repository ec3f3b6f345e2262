"""Committed offsets: who may commit, their records, and reading them back."""
