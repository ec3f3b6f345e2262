"""The cost of many brokers and partitions: `python -m benchmarks.scale`. docs/explanation/scale.md has the results."""
