"""Replicas hosted here: roles, epochs, ISR, high watermark, produce that waits. May import: metadata and below."""
