"""World: the metadata of a cluster of many brokers and partitions, in the records that a controller writes.

Every broker has one log directory and leads equally many partitions. A partition has two more replicas, on any brokers,
all in sync. Every tenth topic has its own setting. A world is stored in a directory as a metadata log, with one
CreateTopics per batch, and beside it as a snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from tailrace.log.disk.checkpoints import DirectoryIdentity
from tailrace.log.disk.files import DiskFiles
from tailrace.metadata.image.features import BOOTSTRAP_LEVELS, METADATA_VERSION, SUPPORTED, record_versions
from tailrace.metadata.image.loader import QuorumFacts
from tailrace.metadata.quorum.observed_log import ObservedLog
from tailrace.metadata.storage.metadata_log_settings import MetadataLogSettings
from tailrace.metadata.storage.metadata_snapshot import SnapshotId, snapshot_batches, write_snapshot_file
from tailrace.metadata.storage.record_framing import build_batch
from tailrace.metadata.storage.storage_format import METADATA_FOLDER, format_directory
from tailrace.model.ids import TopicId
from tailrace.protocol import messages as m
from tailrace.protocol.message import Message

CLUSTER_ID = "c2NhbGUtb2YtdGhpbmdzMQ"
EPOCH = 1
REPLICAS = 3
VERSIONS = record_versions(BOOTSTRAP_LEVELS[METADATA_VERSION])
# The log must not be turned into a snapshot while it is measured.
QUIET = MetadataLogSettings(snapshot_after_bytes=2**40, snapshot_after_ms=0)


def directory_id(broker_id: int) -> bytes:
    return b"directory" + broker_id.to_bytes(7, "big")


def topic_id(number: int) -> bytes:
    return b"topic-id" + number.to_bytes(8, "big")


@dataclass(frozen=True)
class World:
    brokers: int
    partitions: int
    partitions_per_topic: int = 10

    @property
    def topics(self) -> int:
        return self.partitions // self.partitions_per_topic

    def replicas(self, topic: int, partition: int) -> list[int]:
        """Return the replicas, the leader first. The others are scattered, as a controller does."""
        index = topic * self.partitions_per_topic + partition
        leader, others = index % self.brokers, self.brokers - 1
        if others < 2:
            return list(range(self.brokers))
        second = index * 2_654_435_761 % 2**32 % others
        third = (second + 1 + index * 40_503 % 65_521 % (others - 1)) % others
        return [leader, (leader + 1 + second) % self.brokers, (leader + 1 + third) % self.brokers]

    # Records

    def features(self) -> list[Message]:
        return [m.FeatureLevelRecord(name=name, feature_level=level) for name, level in BOOTSTRAP_LEVELS.items()]

    def broker(self, broker_id: int) -> Message:
        endpoint = m.RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=20_000 + broker_id)
        return m.RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=directory_id(broker_id),
            broker_epoch=broker_id,
            end_points=[endpoint],
            features=[
                m.RegisterBrokerRecord.BrokerFeature(
                    name=name, min_supported_version=levels.low, max_supported_version=levels.high
                )
                for name, levels in SUPPORTED.items()
            ],
            rack=f"rack-{broker_id % 3}",
            fenced=False,
            log_dirs=[directory_id(broker_id)],
        )

    def topic(self, number: int) -> list[Message]:
        name = f"topic-{number:07d}"
        made: list[Message] = [m.TopicRecord(name=name, topic_id=topic_id(number))]
        if number % 10 == 0:
            made.append(m.ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value="86400000"))
        for partition in range(self.partitions_per_topic):
            replicas = self.replicas(number, partition)
            made.append(
                m.PartitionRecord(
                    partition_id=partition,
                    topic_id=topic_id(number),
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=[directory_id(one) for one in replicas],
                )
            )
        return made

    def groups(self) -> Iterator[list[Message]]:
        """Yield the records of each batch of the log."""
        yield self.features()
        for broker_id in range(self.brokers):
            yield [self.broker(broker_id)]
        for number in range(self.topics):
            yield self.topic(number)

    # On disk

    def make(self, directory: Path) -> None:
        """Write a metadata log to `directory/log`, and the same state as a snapshot to `directory/snapshot`."""
        if (directory / "made").exists():
            return
        files, now_ms = DiskFiles(), int(time.time() * 1000)
        identity = DirectoryIdentity(CLUSTER_ID, 0, str(TopicId(UUID(bytes=directory_id(0)))))
        for name in ("log", "snapshot"):
            format_directory(files, str(directory / name), identity, controller_endpoints=None, now_ms=now_ms)
        log = ObservedLog(files, str(directory / "log"), identity, QUIET, now_ms=now_ms)
        log.note_leader(3000, EPOCH)
        for group in self.groups():
            log.append(
                build_batch(group, VERSIONS, base_offset=log.end_offset, leader_epoch=EPOCH, timestamp_ms=now_ms),
                now_ms,
            )
        end_offset = log.end_offset
        log.close(now_ms)
        folder = directory / "snapshot" / METADATA_FOLDER
        folder.mkdir()
        batches = snapshot_batches(
            (record for group in self.groups() for record in group),
            VERSIONS,
            quorum=QuorumFacts(),
            epoch=EPOCH,
            last_contained_timestamp=now_ms,
            now_ms=now_ms,
        )
        write_snapshot_file(files, str(folder / SnapshotId(end_offset, EPOCH).file_name), batches)
        (directory / "made").touch()
