"""A Tailrace broker below controllers of Apache Kafka, as a process."""

from __future__ import annotations

from pathlib import Path

from tests.support.kafka_controllers import KafkaControllers
from tests.support.tailrace_controller import TailraceController
from tests.support.tailrace_process import TailraceProcess

ALONE = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
}


def kraft_broker(
    controllers: KafkaControllers | TailraceController,
    data: Path,
    node_id: int = 1,
    settings: dict[str, str] | None = None,
) -> TailraceProcess:
    """Return a broker that is not started yet. Its internal topics have one replica, unless the settings differ."""
    chosen = {
        "process.roles": "broker",
        "node.id": str(node_id),
        "controller.quorum.bootstrap.servers": controllers.bootstrap,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        **ALONE,
        **(settings or {}),
    }
    options = [part for key, text in chosen.items() for part in ("-o", f"{key}={text}")]
    process = TailraceProcess(data, *options, "--log-level", "info")
    process.ready_timeout_s = 120  # the controllers may have just been started
    return process
