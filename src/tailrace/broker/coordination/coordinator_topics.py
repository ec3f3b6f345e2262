"""The coordinators' topics, made when a client first asks for a coordinator, with the settings that Kafka gives them.

Kafka refuses to make them as long as there are fewer brokers than their replication factor, which is 3 unless it is
configured, and so does a controller quorum here. A node that is alone gives them one replica.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import CreateTopicsRequest

if TYPE_CHECKING:
    from tailrace.broker.broker import Broker

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"

_PREFIXES: Final = {
    CONSUMER_OFFSETS: "offsets.topic",
    TRANSACTION_STATE: "transaction.state.log",
    SHARE_GROUP_STATE: "share.coordinator.state.topic",
}


def ensure_topic(broker: Broker, topic: str, now_ms: int) -> None:
    """Make a coordinator's topic unless it is there; a KafkaError if that cannot be."""
    if topic in broker.image.topics:
        return
    config = broker.config
    prefix = _PREFIXES[topic]
    settings = {"cleanup.policy": "compact", "segment.bytes": str(config.integer(f"{prefix}.segment.bytes"))}
    if topic == CONSUMER_OFFSETS:
        settings["compression.type"] = "producer"
    elif topic == SHARE_GROUP_STATE:
        settings["cleanup.policy"] = "delete"
        settings["compression.type"] = "producer"
        settings["min.insync.replicas"] = str(config.integer(f"{prefix}.min.isr"))
        settings["retention.ms"] = "-1"
    else:
        settings["compression.type"] = "uncompressed"
        settings["min.insync.replicas"] = str(config.integer(f"{prefix}.min.isr"))
        settings["unclean.leader.election.enable"] = "false"
    replicas = config.integer(f"{prefix}.replication.factor")
    if broker.forwarding is None:
        replicas = min(replicas, len(list(broker.image.unfenced_brokers())))
    wanted = CreateTopicsRequest.CreatableTopic(
        name=topic,
        num_partitions=config.integer(f"{prefix}.num.partitions"),
        replication_factor=max(replicas, 1),
        configs=[CreateTopicsRequest.CreatableTopicConfig(name=name, value=text) for name, text in settings.items()],
    )
    if broker.forwarding is not None:
        broker.forwarding.make_topic(wanted, None, now_ms)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} is being made")
    result = broker.local_controller.create_topics(CreateTopicsRequest(topics=[wanted]), now_ms).topics[0]
    if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        raise KafkaError(ErrorCode(result.error_code), result.error_message or "")
