"""ConfigUpdates: applies changed settings to the logs of hosted partitions.

The logs of at most AT_ONCE partitions are updated before the response to the request that changed the settings. The
others follow in steps at the next ticks, because a change can concern every partition of the broker. A log always gets
the settings of the metadata at that time, so an update that is overtaken by another change does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.ids import TopicPartition
from tailrace.replication.hosted_partitions import HostedPartitions

AT_ONCE = 500


class ConfigUpdates:
    def __init__(self, config: BrokerConfig, partitions: HostedPartitions, is_turn_over: Callable[[], bool]) -> None:
        """`is_turn_over()` returns True if the loop should do other work now."""
        self._config = config
        self._partitions = partitions
        self._is_turn_over = is_turn_over
        self._image: MetadataImage | None = None
        self._outdated: dict[str, int] = {}  # topic → the first partition whose log has to be updated

    def update_topics(self, image: MetadataImage, names: Iterable[str]) -> None:
        """Update the logs of some topics, of which some may be deleted."""
        self._outdated.update(dict.fromkeys(names, 0))
        self._begin_update(image)

    def update_all(self, image: MetadataImage) -> None:
        """Update the logs of all topics."""
        self._outdated = dict.fromkeys(image.topics, 0)
        self._begin_update(image)

    def _begin_update(self, image: MetadataImage) -> None:
        self._image = image
        self._update(image, AT_ONCE)

    def tick(self, now_ms: int) -> None:
        """Update more logs, until the turn is over."""
        image = self._image
        while image is not None and self._outdated:
            self._update(image, AT_ONCE // 10)
            if self._is_turn_over():
                return

    def next_deadline_ms(self) -> int | None:
        return 0 if self._outdated else None

    def _update(self, image: MetadataImage, partitions_max: int) -> None:
        while partitions_max > 0 and self._outdated:
            name, first = self._outdated.popitem()
            topic = image.topics.get(name)
            if topic is None:
                partitions_max -= 1
                continue
            last = min(first + partitions_max, len(topic.partitions))
            if last < len(topic.partitions):
                self._outdated[name] = last
            config = self._config.topic_config(image, name)
            for number in range(first, last):
                partition = self._partitions.get(TopicPartition(name, number))
                if partition is not None:
                    partition.log.update_config(config)
            partitions_max -= max(last - first, 1)
