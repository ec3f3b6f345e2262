"""The image: the time to load it, its size, and the cost of a change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.scale.child import cpu_s, cpu_us, freeze_heap, memory_mb
from benchmarks.scale.world import QUIET, World, topic_id
from tailrace.log.disk.files import DiskFiles
from tailrace.metadata.image.delta import MetadataDelta
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.quorum.observed_log import ObservedLog
from tailrace.metadata.storage.storage_format import read_identity
from tailrace.protocol import messages as m
from tailrace.protocol.message import Message


def make(directory: str, brokers: int, partitions: int) -> dict[str, float]:
    World(brokers, partitions).make(Path(directory))
    return {}


def observed(directory: str, source: str) -> ObservedLog:
    """Return the metadata log of a world, read to its end; `source` is log or snapshot."""
    files, path = DiskFiles(), f"{directory}/{source}"
    log = ObservedLog(files, path, read_identity(files, path), QUIET, now_ms=1)
    log.advance(log.end_offset, 1)
    return log


def load(directory: str, source: str) -> dict[str, float]:
    """Return the cost of loading the metadata at a start, and its memory afterwards."""
    before_mb = memory_mb()
    kept: list[ObservedLog] = []
    taken_s = cpu_s(lambda: kept.append(observed(directory, source)))
    peak_mb = memory_mb("VmHWM")
    freeze_heap()
    return {"cpu_s": taken_s, "mb": memory_mb() - before_mb, "peak_mb": peak_mb - before_mb}


def _change(world: World, index: int, **what: Any) -> Message:
    topic, partition = divmod(index, world.partitions_per_topic)
    return m.PartitionChangeRecord(topic_id=topic_id(topic), partition_id=partition, **what)


def fence(world: World, broker_id: int) -> list[Message]:
    """Return the records of a fenced broker: it leaves every ISR, and other replicas lead its partitions."""
    records: list[Message] = [m.BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker_id, fenced=1)]
    for index in range(world.partitions):
        replicas = world.replicas(*divmod(index, world.partitions_per_topic))
        if broker_id in replicas:
            isr = [one for one in replicas if one != broker_id]
            records.append(_change(world, index, isr=isr, **({"leader": isr[0]} if replicas[0] == broker_id else {})))
    return records


def apply(image: MetadataImage, records: Sequence[Message]) -> MetadataImage:
    delta = MetadataDelta(image)
    delta.replay_all(records)
    return delta.apply(offset=image.offset + 1, epoch=image.epoch, timestamp_ms=1)


def changes(directory: str, brokers: int, partitions: int) -> dict[str, float]:
    """Return the cost of one delta, without its effect on the replicas here."""
    world = World(brokers, partitions)
    image = observed(directory, "snapshot").image
    freeze_heap()
    step = max(partitions // 1_000, 1)
    one = [_change(world, 7, leader=1)]
    many = [_change(world, index * step, leader=1) for index in range(min(1_000, partitions))]
    fenced = fence(world, 5)
    return {
        "one_us": cpu_us(lambda: apply(image, one)),
        "thousand_us": cpu_us(lambda: apply(image, many)),
        "fence_us": cpu_us(lambda: apply(image, fenced)),
        "fence_records": len(fenced),
        "topic_us": cpu_us(lambda: apply(image, [m.TopicRecord(name="new", topic_id=bytes(16))])),
    }
