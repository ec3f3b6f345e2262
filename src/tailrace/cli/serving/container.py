"""The entry point of the container image: a broker with its settings from environment variables.

    python -m tailrace.cli.serving.container            serve until SIGTERM
    python -m tailrace.cli.serving.container health     exit status 0 if the broker is ready

The variables are those of Apache Kafka's image, so that a compose file or a test needs only another image name. Each
KAFKA_… variable is a setting: its name in lower case, with a dot for each underscore. Two underscores stand for an
underscore, three for a dash. A server.properties may be mounted as well; variables override it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from tailrace.cli.errors import USAGE_ERROR, CommandError
from tailrace.cli.main import main as run_command
from tailrace.cli.output import warn
from tailrace.cli.serving.http_get import get

MOUNTED: Final = "/mnt/shared/config/server.properties"
METRICS_PORT: Final = "9404"
_PREFIX: Final = "KAFKA_"
# Variables that are not settings of a broker: they are for Java, for its logging, or for ZooKeeper.
_NO_SETTINGS: Final = frozenset(
    {
        "KAFKA_VERSION", "KAFKA_HEAP_OPTS", "KAFKA_LOG4J_OPTS", "KAFKA_OPTS", "KAFKA_JMX_OPTS", "KAFKA_JMX_PORT",
        "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_GC_LOG_OPTS", "KAFKA_LOG4J_ROOT_LOGLEVEL", "KAFKA_LOG4J_LOGGERS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL", "KAFKA_JMX_HOSTNAME", "KAFKA_ZOOKEEPER_CONNECT",
    }
)  # fmt: skip
_LEVELS: Final = {
    "TRACE": "debug", "DEBUG": "debug", "INFO": "info", "WARN": "warning", "ERROR": "error", "FATAL": "error",
}  # fmt: skip
_ALONE: Final = {"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://localhost:9092"}


def main(arguments: Sequence[str], environment: Mapping[str, str], mounted: str = MOUNTED) -> int:
    try:
        if arguments == ["health"]:
            return _check_health(environment)
        if arguments:
            raise CommandError(f"{arguments[0]} is not an argument of the container: give none, or health")
        return run_command(serve_arguments(environment, mounted))
    except CommandError as error:
        warn(str(error))
        return USAGE_ERROR


def serve_arguments(environment: Mapping[str, str], mounted: str = MOUNTED) -> list[str]:
    """Return the arguments of `tailrace serve` for these variables. Raise CommandError for an unknown log level."""
    has_file = os.path.exists(mounted)
    settings = settings_of(environment)
    defaults = {"tailrace.metrics.port": METRICS_PORT, "tailrace.metrics.host": ""}
    if not has_file:
        defaults["log.dirs"] = settings.get("log.dir", "/var/lib/kafka/data")
        if "listeners" not in settings:
            defaults |= _ALONE
    settings = defaults | settings
    level = environment.get("KAFKA_LOG4J_ROOT_LOGLEVEL", "INFO")
    if level.upper() not in _LEVELS:
        raise CommandError(f"KAFKA_LOG4J_ROOT_LOGLEVEL={level} is not one of {', '.join(_LEVELS)}")
    arguments = ["serve", "--log-level", _LEVELS[level.upper()], "--ready-line", _ready_line(settings)]
    if has_file:
        arguments += ["--config", mounted]
    if cluster_id := environment.get("CLUSTER_ID"):
        arguments.append(f"--cluster-id={cluster_id}")
    for name, text in settings.items():
        arguments += ["-o", f"{name}={text}"]
    return arguments


def settings_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in KAFKA_… variables by their names in a server.properties."""
    separators = {"___": "-", "__": "_", "_": "."}
    return {
        re.sub("___|__|_", lambda found: separators[found[0]], name.removeprefix(_PREFIX).lower()): text
        for name, text in sorted(environment.items())
        if name.startswith(_PREFIX) and name not in _NO_SETTINGS and name != _PREFIX
    }


def _ready_line(settings: Mapping[str, str]) -> str:
    """Return a line with the phrases of Kafka's log that Testcontainers waits for, in Python, Java, Go and Node."""
    node_id = settings.get("node.id", settings.get("broker.id", "1"))
    return (
        f"[KafkaRaftServer nodeId={node_id}] Kafka Server started ([KafkaServer id={node_id}] started; "
        "Transitioning from RECOVERY to RUNNING)"
    )


def _check_health(environment: Mapping[str, str]) -> int:
    port = environment.get("KAFKA_TAILRACE_METRICS_PORT", METRICS_PORT)
    page = get(f"127.0.0.1:{port}", "/readyz")
    print(page.text.rstrip("\n"))
    return 0 if page.status == 200 else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], os.environ))
