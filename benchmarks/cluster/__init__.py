"""Three brokers of ours below a controller of Apache Kafka, beside three of Apache Kafka's below the same."""
