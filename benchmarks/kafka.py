"""Apache Kafka to compare with: the same installation that the tests use."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.kafka_install import kafka_installation
from tests.support.log_oracle import LogOracle

# The tests' short-lived JVMs do without the optimising compiler and the parallel collector; here Kafka has both.
JVM_FLAGS = ("-XX:+UseG1GC", "-Xlog:disable", "-Xlog:all=error:stderr")


def oracle() -> LogOracle:
    """Kafka's log code in a JVM; KafkaUnavailable where there is no Java or no Maven."""
    return LogOracle(kafka_installation(), JVM_FLAGS)


def cpu_seconds(pid: int) -> float:
    """The CPU time that a process has taken so far, all its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
