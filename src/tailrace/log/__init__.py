"""One partition's log on disk, byte for byte as Apache Kafka keeps it. May import: records, protocol, model."""
