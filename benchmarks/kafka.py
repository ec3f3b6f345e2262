"""Apache Kafka to compare with: the same installation that the tests use."""

from __future__ import annotations

from tests.support.kafka_install import kafka_installation
from tests.support.log_oracle import LogOracle


def oracle() -> LogOracle:
    """Kafka's log code in a JVM; KafkaUnavailable where there is no Java or no Maven."""
    return LogOracle(kafka_installation())
