"""What many brokers and partitions cost: `python -m benchmarks.scale`; docs/explanation/scale.md has what it found."""
