"""LoadProposals: adopts segments that a load job has built while the broker runs.

`log/directories/bulk_load_proposal.py` describes how the job proposes them.
"""

from __future__ import annotations

import logging

from tailrace.log.directories.bulk_load_proposal import FOLDER, PROPOSALS, Outcome, answer, proposed
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk.files import Files, join
from tailrace.log.recovery.adoption import NotAdoptable, adopt
from tailrace.model.errors import KafkaError
from tailrace.model.ids import LeaderEpoch, TopicPartition
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.waiting.purgatory import Purgatory

_log = logging.getLogger(__name__)


class LoadProposals:
    def __init__(self, files: Files, partitions: HostedPartitions, purgatory: Purgatory) -> None:
        self._files = files
        self._partitions = partitions
        self._purgatory = purgatory
        self.taken = 0  # partitions whose proposed segments were adopted

    def take(self, directory: LogDirectory, now_ms: int) -> None:
        """Adopt the segments proposed for the partitions of a directory: for each partition, all or none."""
        try:
            wanted = proposed(self._files, directory.path)
        except ValueError as error:
            _log.warning("%s: the proposals of a load job cannot be read: %s", directory.path, error)
            self._files.replace(join(directory.path, PROPOSALS), join(directory.path, f"{PROPOSALS}.broken"))
            return
        if wanted is None:
            return
        logs = [log for key in wanted if (log := directory.logs.get(key)) is not None]
        unwritten = [log for log in logs if not log.epochs.write_without_records()]
        if unwritten:
            return  # adopted segments are durable at once, so the leader epoch must be on disk before
        outcomes = {partition: self._taken(directory, partition, epoch, now_ms) for partition, epoch in wanted.items()}
        answer(self._files, directory.path, outcomes)

    def _taken(self, directory: LogDirectory, key: TopicPartition, epoch: LeaderEpoch, now_ms: int) -> Outcome:
        partition, log = self._partitions.get(key), directory.logs.get(key)
        if partition is None or log is None or partition.leader is None:
            return Outcome(None, f"this broker does not lead {key} in {directory.path}")
        if partition.leader_epoch != epoch:
            return Outcome(
                None, f"{key} is at leader epoch {partition.leader_epoch}, but the segments have epoch {epoch}"
            )
        try:
            found = adopt(self._files, log, join(log.directory, FOLDER), epoch, now_ms)
        except (NotAdoptable, KafkaError, FileNotFoundError) as error:
            _log.warning("%s: the segments of a load job are refused: %s", key, error)
            return Outcome(None, str(error))
        self.taken += 1
        _log.info("%s: %d segments of a load job are adopted, up to offset %d", key, found.segments, found.end_offset)
        partition.leader.advance_high_watermark(now_ms)
        self._purgatory.check(key, now_ms)
        return Outcome(found.end_offset)
