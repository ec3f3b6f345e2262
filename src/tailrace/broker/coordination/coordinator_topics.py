"""CoordinatorTopics: the coordinators' topics, created when a client first asks for a coordinator.

They get the same settings as in Kafka. Their replication factor is 3 by default. Kafka's controllers do not create them
while there are fewer brokers. In a cluster of one node they get one replica.
"""

from __future__ import annotations

from typing import Final

from tailrace.broker.cluster.forwarding import Forwarding
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.protocol.messages import CreateTopicsRequest

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"

_PREFIXES: Final = {
    CONSUMER_OFFSETS: "offsets.topic",
    TRANSACTION_STATE: "transaction.state.log",
    SHARE_GROUP_STATE: "share.coordinator.state.topic",
}


class CoordinatorTopics:
    def __init__(self, config: BrokerConfig, controller: Controller, forwarding: Forwarding | None) -> None:
        self._config = config
        self._controller = controller
        self._forwarding = forwarding

    def ensure(self, topic: str, now_ms: int) -> None:
        """Create a coordinator's topic unless it exists. Raise KafkaError if it cannot be used yet."""
        if topic in self._controller.image.topics:
            return
        new = self._creatable_topic(topic)
        if self._forwarding is not None:
            self._forwarding.make_topic(new, None, now_ms)
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} is being created")
        assert isinstance(self._controller, LocalController)
        result = self._controller.create_topics(CreateTopicsRequest(topics=[new]), now_ms).topics[0]
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise KafkaError(ErrorCode(result.error_code), result.error_message or "")

    def ensure_share_state(self, now_ms: int) -> None:
        """Create `__share_group_state` unless it exists."""
        self.ensure(SHARE_GROUP_STATE, now_ms)

    def _creatable_topic(self, topic: str) -> CreateTopicsRequest.CreatableTopic:
        config, prefix = self._config, _PREFIXES[topic]
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
        if not self._config.roles.serves_brokers and self._forwarding is None:
            replicas = min(replicas, len(list(self._controller.image.unfenced_brokers())))
        return CreateTopicsRequest.CreatableTopic(
            name=topic,
            num_partitions=config.integer(f"{prefix}.num.partitions"),
            replication_factor=max(replicas, 1),
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=name, value=text) for name, text in settings.items()
            ],
        )
