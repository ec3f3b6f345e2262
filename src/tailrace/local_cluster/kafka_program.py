"""KafkaProgram: how Apache Kafka is run here: a Java, and Kafka's jars.

The jars are those that a controller of the version in `kafka_controller.json` needs, from a Maven repository, or all of
an installation (`--kafka-home`), whatever its version.
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

# A controller has little to do: a small heap, one collector thread, and no compiler that costs more than it gains.
_JVM_FLAGS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SERVER: Final = "kafka.Kafka"
STORAGE_TOOL: Final = "kafka.tools.StorageTool"
# Written beside a controller's settings: what it has to say goes to its standard output, and so into its log file.
LOG4J: Final = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %m (%c)%n
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
"""


class NoKafka(Exception):
    """A folder that is no installation of Apache Kafka."""


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
    """What a controller needs, of the version that we are held against."""
    told = json.loads(files("tailrace.local_cluster").joinpath("kafka_controller.json").read_text())
    artifacts = (Artifact(one["path"], one["size"], one["sha256"]) for one in told["jars"])
    return ControllerJars(told["version"], tuple(artifacts))


def installed_jars(home: Path) -> Sequence[Path]:
    """The jars of an installation; NoKafka where there are none."""
    found = sorted((home / "libs").glob("*.jar"))
    if not any(jar.name.startswith("kafka-server-") for jar in found):
        raise NoKafka(f"{home} is no installation of Apache Kafka: there is no libs/kafka-server-….jar")
    return found
