"""KafkaProgram: command lines that run Apache Kafka, with a Java and Kafka's jars.

The jars come from a Maven repository: those that a controller of the version in `kafka_controller.json` needs. Or they
are all jars of an installed Apache Kafka of any version (`--kafka-home`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from tailrace.java import Java
from tailrace.local_cluster.maven import Artifact

# A controller has little work: a small heap, the serial collector and only the fast compiler are enough.
_JVM_FLAGS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SERVER: Final = "kafka.Kafka"
STORAGE_TOOL: Final = "kafka.tools.StorageTool"
# The logging configuration of a controller: log to standard output, which is redirected to its log file.
LOG4J: Final = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m (%c)%n
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
"""


class NoKafka(Exception):
    """A folder without an installed Apache Kafka."""


class ControllerJars(NamedTuple):
    version: str
    artifacts: tuple[Artifact, ...]

    @property
    def size(self) -> int:
        return sum(one.size for one in self.artifacts)


class KafkaProgram(NamedTuple):
    java: Java
    jars: tuple[Path, ...]

    def command(self, main_class: str, *arguments: str, log4j: Path | None = None) -> list[str]:
        logging = [] if log4j is None else [f"-Dlog4j2.configurationFile={log4j}"]
        class_path = os.pathsep.join(map(str, self.jars))
        return [str(self.java.executable), *_JVM_FLAGS, *logging, "-cp", class_path, main_class, *arguments]


def controller_jars() -> ControllerJars:
    """Return the jars that a controller needs, of the Kafka version that Tailrace is tested with."""
    listing = json.loads(files("tailrace.local_cluster").joinpath("kafka_controller.json").read_text())
    artifacts = (Artifact(one["path"], one["size"], one["sha256"]) for one in listing["jars"])
    return ControllerJars(listing["version"], tuple(artifacts))


def installed_jars(home: Path) -> Sequence[Path]:
    """Return the jars of an installed Apache Kafka. Raise NoKafka if there are none."""
    found = sorted((home / "libs").glob("*.jar"))
    if not any(jar.name.startswith("kafka-server-") for jar in found):
        raise NoKafka(f"{home} is not an installation of Apache Kafka: it has no libs/kafka-server-….jar")
    return found
