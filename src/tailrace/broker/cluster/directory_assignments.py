"""DirectoryAssignments: reports the log directory of a replica to the controller if the metadata has another one.

With one directory there is nothing to report, because the controller assigns new replicas to it. With several, the
broker chooses, and the controller has to know, so that it can elect other leaders when a directory fails.
"""

from __future__ import annotations

from tailrace.log.directories.log_directories import LogDirectories
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition


class DirectoryAssignments:
    def __init__(self, controller: Controller, logs: LogDirectories, partitions: HostedPartitions) -> None:
        self._controller = controller
        self._logs = logs
        self._partitions = partitions

    def check_all(self, now_ms: int) -> None:
        """Report all replicas that are hosted here."""
        image = self._controller.image
        for partition in self._partitions:
            state = image.partition(partition.key)
            if state is not None:
                self.check(partition, state, now_ms)

    def check(self, partition: Partition, state: PartitionRegistration, now_ms: int) -> None:
        """Report a replica that was just hosted as `state` says."""
        node_id, image = self._controller.node_id, self._controller.image
        if node_id not in state.replicas or not image.record_versions.has_directories:
            return
        place = self._logs.directory_of(partition.log).id
        move = partition.move
        if move is not None and state.directory_of(node_id) == move.target.id:
            return  # it is about to come there
        if state.directory_of(node_id) != place:
            self._controller.assign_directories([(place, partition.topic_id, partition.key.partition)], now_ms)
