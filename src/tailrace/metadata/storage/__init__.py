"""The metadata log and its snapshots on disk."""
