"""Compaction: which records stay, the cleaner, and segments proposed by others."""
