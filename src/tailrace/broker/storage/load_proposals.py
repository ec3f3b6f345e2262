"""Taking in what a load has built beside a running broker: `log/directories/load_proposal.py` says how it is
proposed."""

from __future__ import annotations

import logging

from tailrace.log.directories.load_proposal import FOLDER, PROPOSALS, Outcome, answer, proposed
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
        self.taken = 0  # partitions whose segments were taken in

    def take(self, directory: LogDirectory, now_ms: int) -> None:
        """Take in what is proposed for the partitions of a directory, each as a whole or not at all."""
        try:
            wanted = proposed(self._files, directory.path)
        except ValueError as error:
            _log.warning("%s: a proposed load cannot be read: %s", directory.path, error)
            self._files.replace(join(directory.path, PROPOSALS), join(directory.path, f"{PROPOSALS}.broken"))
            return
        if wanted is None:
            return
        if any((log := directory.logs.get(key)) is not None and not log.epochs.is_written for key in wanted):
            return  # what is taken in counts as durable at once, so its epoch has to be
        outcomes = {partition: self._taken(directory, partition, epoch, now_ms) for partition, epoch in wanted.items()}
        answer(self._files, directory.path, outcomes)

    def _taken(self, directory: LogDirectory, key: TopicPartition, epoch: LeaderEpoch, now_ms: int) -> Outcome:
        partition, log = self._partitions.get(key), directory.logs.get(key)
        if partition is None or log is None or partition.leader is None:
            return Outcome(None, f"{key} is not led from {directory.path}")
        if partition.leader_epoch != epoch:
            return Outcome(None, f"{key} is at leader epoch {partition.leader_epoch}, and the segments are of {epoch}")
        try:
            found = adopt(self._files, log, join(log.directory, FOLDER), epoch, now_ms)
        except (NotAdoptable, KafkaError, FileNotFoundError) as error:
            _log.warning("%s: a proposed load is refused: %s", key, error)
            return Outcome(None, str(error))
        self.taken += 1
        _log.info("%s: %d segments of a load are taken in, up to offset %d", key, found.segments, found.end_offset)
        partition.leader.advance_high_watermark(now_ms)
        self._purgatory.check(key, now_ms)
        return Outcome(found.end_offset)
