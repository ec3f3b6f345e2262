"""Apache Kafka for comparison: the same installation as in the tests."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.kafka_install import kafka_installation
from tests.support.log_oracle import LogOracle

# The tests' short-lived JVMs run without the optimising compiler and the parallel collector; here Kafka has both.
JVM_FLAGS = ("-XX:+UseG1GC", "-Xlog:disable", "-Xlog:all=error:stderr")


def oracle() -> LogOracle:
    """Return Kafka's log code in a JVM. Raise KafkaUnavailable without Java or Maven."""
    return LogOracle(kafka_installation(), JVM_FLAGS)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
