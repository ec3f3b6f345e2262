"""A cluster on one machine, for trying it: controllers of Apache Kafka and brokers of ours, as processes."""
