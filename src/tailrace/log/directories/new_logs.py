"""Making logs, many at a time, on any thread.

A log counts when all that it begins with is durable: its folder, the files of its first segment, the topic's id, and
the epoch of its leader if that is this broker. So three syncs for each log, and one of the directory for all of them.
After a crash on the way any of these may be missing, and is made by whoever opens the log or leads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import write_topic_id
from tailrace.log.disk.files import Files, join
from tailrace.log.leader_epochs import EpochStart, LeaderEpochs, write_epochs
from tailrace.log.partition_log import PartitionLog
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.recovery.recovery import open_log
from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.upkeep.deferred import Deferred
from tailrace.log.watermarks import Watermarks
from tailrace.model.ids import NO_LEADER_EPOCH, LeaderEpoch, TopicId, TopicPartition
from tailrace.model.topic_config import TopicConfig


class NewLog(NamedTuple):
    partition: TopicPartition
    config: TopicConfig
    topic_id: TopicId | None = None
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH  # under which it will be written to, if that is known


def make_logs(
    files: Files,
    path: str,
    wanted: Iterable[NewLog],
    jitter_of: Callable[[TopicConfig], Callable[[], int]],
    producer_expiration_ms: int,
    now_ms: int,
) -> list[PartitionLog]:
    """In the log directory `path`, on any thread."""
    logs = [_make_log(files, path, new, jitter_of(new.config), producer_expiration_ms, now_ms) for new in wanted]
    files.sync_directory(path)
    return logs


def _make_log(
    files: Files, path: str, new: NewLog, new_jitter_ms: Callable[[], int], producer_expiration_ms: int, now_ms: int
) -> PartitionLog:
    directory = join(path, str(new.partition))
    files.make_directory(directory)
    if files.entries(directory):
        # Somebody has left files there.
        log = open_log(files, directory, new.config, now_ms=now_ms, clean=True, new_jitter_ms=new_jitter_ms)
        if new.topic_id is not None:
            log.assign_topic_id(new.topic_id)
        return log
    epochs = LeaderEpochs(files, join(directory, file_names.LEADER_EPOCH_CHECKPOINT))
    if new.leader_epoch == NO_LEADER_EPOCH:
        files.write(epochs.path, b"", sync=False)  # as Kafka makes it: there, and empty
    else:
        epochs.entries = [EpochStart(new.leader_epoch, 0)]
        write_epochs(files, epochs.path, epochs.entries, sync_name=False)
    if new.topic_id is not None:
        write_topic_id(files, join(directory, file_names.PARTITION_METADATA), new.topic_id, sync_name=False)
    segments = SegmentList()
    segments.add(Segment.create(files, directory, 0, new.config, now_ms=now_ms, jitter_ms=new_jitter_ms()))
    files.sync_directory(directory)
    return PartitionLog(
        files,
        directory,
        new.partition,
        new.config,
        segments=segments,
        marks=Watermarks(0, LogPosition(0, 0, 0), LogPosition(0)),
        epochs=epochs,
        producers=ProducerStates(files, directory, new.partition, producer_expiration_ms),
        deferred=Deferred(),
        recovery_point=0,
        topic_id=new.topic_id,
        new_jitter_ms=new_jitter_ms,
        now_ms=now_ms,
    )
