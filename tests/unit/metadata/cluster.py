"""A cluster of several brokers as an image, to make decisions from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tailrace.metadata.controller.control_state import ControlState, Plan
from tailrace.metadata.decisions.replicas.leadership import partition_change
from tailrace.metadata.image.delta import MetadataDelta
from tailrace.metadata.image.effective_config import EffectiveConfigs
from tailrace.metadata.image.features import BOOTSTRAP_LEVELS, SUPPORTED
from tailrace.metadata.image.image import EMPTY_IMAGE, MetadataImage
from tailrace.metadata.image.registrations import BrokerRegistration, Endpoint
from tailrace.protocol import messages as m
from tailrace.protocol.message import Message
from tests.support.controller_twin import counted_ids

VERSIONS = EMPTY_IMAGE.record_versions


def directory(broker: int, number: int = 0) -> bytes:
    return bytes([100 + broker]) * 15 + bytes([number])


def registration(broker: int, **fields: Any) -> BrokerRegistration:
    values: dict[str, Any] = {
        "id": broker,
        "epoch": 100 + broker,
        "incarnation_id": bytes([broker]) * 16,
        "endpoints": {"PLAINTEXT": Endpoint("PLAINTEXT", "h", 9092)},
        "features": SUPPORTED,
        "fenced": False,
        "directories": (directory(broker),),
    }
    return BrokerRegistration(**{**values, **fields})


class Cluster:
    """An image that plans are carried out on."""

    def __init__(
        self,
        brokers: Sequence[BrokerRegistration] | None = None,
        *,
        levels: Mapping[str, int] = BOOTSTRAP_LEVELS,
        static: Mapping[str, str] | None = None,
    ) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self.configs = EffectiveConfigs(static or {}, 1)
        self._new_id = counted_ids()
        self.apply([m.FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()])
        members = [registration(number) for number in (1, 2, 3)] if brokers is None else brokers
        self.apply([one.to_record(VERSIONS) for one in members])

    @property
    def state(self) -> ControlState:
        return ControlState(image=self.image, configs=self.configs, new_id=self._new_id, next_int=lambda _: 0)

    def apply(self, records: Sequence[Message]) -> None:
        delta = MetadataDelta(self.image)
        delta.replay_all(records)
        self.image = delta.apply(offset=self.image.offset + len(records), epoch=1, timestamp_ms=1)

    def carry_out(self, plan: Plan[Any]) -> Any:
        self.apply(plan.records)
        return plan.result

    def set_isr(self, isr: list[int], topic: str = "t", number: int = 0) -> None:
        """Change the ISR of a partition, with everything that follows from it."""
        change = partition_change(self.state, self.image.topics[topic], number)
        record = replace(change, isr=isr).build()
        assert record is not None
        self.apply([record])

    def partition(self, topic: str = "t", number: int = 0) -> Any:
        return self.image.topics[topic].partitions[number]

    def add_topic(self, name: str, *replicas: list[int], isr: list[int] | None = None, **configs: str) -> None:
        """Add a topic with the partitions' replicas, which are all in sync unless `isr` is given."""
        topic_id = self._new_id()
        self.apply([m.TopicRecord(name=name, topic_id=topic_id)])
        self.apply(
            [
                m.ConfigRecord(resource_type=2, resource_name=name, name=key.replace("_", "."), value=value)
                for key, value in configs.items()
            ]
        )
        self.apply(
            [
                m.PartitionRecord(
                    partition_id=number,
                    topic_id=topic_id,
                    replicas=brokers,
                    isr=brokers if isr is None else isr,
                    leader=(brokers if isr is None else [*isr, -1])[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=[directory(one) for one in brokers],
                )
                for number, brokers in enumerate(replicas)
            ]
        )
