"""What many brokers and partitions cost: `python -m benchmarks.scale`; docs/scale.md has what it found."""
