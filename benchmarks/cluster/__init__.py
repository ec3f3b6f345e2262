"""Three Tailrace brokers below an Apache Kafka controller, compared with three Kafka brokers."""
