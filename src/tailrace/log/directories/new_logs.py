"""Creates logs, many at a time, on any thread.

A log is usable when its first files are durable: its folder, the files of its first segment, the topic id, and the
leader epoch if this broker leads it. That takes three syncs for each log, and one of the directory for all. After a
crash meanwhile some of these may be missing. They are created when the log is opened or gets a leader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import write_topic_id
from tailrace.log.disk.files import Files, join
from tailrace.log.disk.log_folder import LogFolder
from tailrace.log.leader_epochs import EpochStart, LeaderEpochs, write_epochs
from tailrace.log.partition_log import LogState, PartitionLog
from tailrace.log.producers.producer_states import ProducerStates
from tailrace.log.recovery.recovery import open_log
from tailrace.log.segments.position import LogPosition
from tailrace.log.segments.segment import Segment
from tailrace.log.segments.segment_list import SegmentList
from tailrace.log.watermarks import Watermarks
from tailrace.model.ids import NO_LEADER_EPOCH, LeaderEpoch, TopicId, TopicPartition
from tailrace.model.topic_config import TopicConfig


class NewLog(NamedTuple):
    partition: TopicPartition
    config: TopicConfig
    topic_id: TopicId | None = None
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH  # the epoch of its first records, if known


def make_logs(
    files: Files,
    path: str,
    wanted: Iterable[NewLog],
    jitter_of: Callable[[TopicConfig], Callable[[], int]],
    producer_expiration_ms: int,
    now_ms: int,
) -> list[PartitionLog]:
    """Create logs in the log directory `path`. This may run on any thread."""
    logs = [_make_log(files, path, new, jitter_of(new.config), producer_expiration_ms, now_ms) for new in wanted]
    files.sync_directory(path)
    return logs


def _make_log(
    files: Files, path: str, new: NewLog, new_jitter_ms: Callable[[], int], producer_expiration_ms: int, now_ms: int
) -> PartitionLog:
    directory = join(path, str(new.partition))
    files.make_directory(directory)
    if files.entries(directory):
        # The folder has files already.
        log = open_log(files, directory, new.config, now_ms=now_ms, clean=True, new_jitter_ms=new_jitter_ms)
        if new.topic_id is not None:
            log.assign_topic_id(new.topic_id)
        return log
    epochs = LeaderEpochs(files, join(directory, file_names.LEADER_EPOCH_CHECKPOINT))
    if new.leader_epoch == NO_LEADER_EPOCH:
        files.write(epochs.path, b"", sync=False)  # an empty file, as Kafka creates it
    else:
        epochs.entries = [EpochStart(new.leader_epoch, 0)]
        write_epochs(files, epochs.path, epochs.entries, sync_name=False)
    if new.topic_id is not None:
        write_topic_id(files, join(directory, file_names.PARTITION_METADATA), new.topic_id, sync_name=False)
    segments = SegmentList()
    segments.add(Segment.create(files, directory, 0, new.config, now_ms=now_ms, jitter_ms=new_jitter_ms()))
    segments.active.release()
    files.sync_directory(directory)
    return PartitionLog(
        LogFolder(files, directory, new.partition, new.topic_id),
        new.config,
        LogState(
            segments,
            Watermarks(0, LogPosition(0, 0, 0), LogPosition(0)),
            epochs,
            ProducerStates(files, directory, new.partition, producer_expiration_ms),
        ),
        recovery_point=0,
        new_jitter_ms=new_jitter_ms,
        now_ms=now_ms,
    )
