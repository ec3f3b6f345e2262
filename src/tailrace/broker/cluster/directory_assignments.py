"""DirectoryAssignments: reports the log directory of a replica to the controller if the metadata has another one.

If the broker has one directory, the controller assigns new replicas to it, and no report is needed. If it has several,
the broker chooses. The controller must learn the choice, so that it can elect other leaders when a directory fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tailrace.log.directories.log_directories import LogDirectories
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition


class DirectoryAssignments:
    def __init__(
        self,
        controller: Controller,
        report: Callable[[Sequence[tuple[bytes, bytes, int]], int], object],
        logs: LogDirectories,
        partitions: HostedPartitions,
    ) -> None:
        """`report(assignments, now_ms)` sends (directory id, topic id, partition) to the controller. It must be
        callable while a new image is being applied."""
        self._controller = controller
        self._report = report
        self._logs = logs
        self._partitions = partitions

    def check_all(self, now_ms: int) -> None:
        """Check all replicas that are hosted here."""
        image = self._controller.image
        for partition in self._partitions:
            state = image.partition(partition.key)
            if state is not None:
                self.check(partition, state, now_ms)

    def check(self, partition: Partition, state: PartitionRegistration, now_ms: int) -> None:
        """Report the directory of a replica if `state` has another one."""
        node_id, image = self._controller.node_id, self._controller.image
        if node_id not in state.replicas or not image.record_versions.has_directories:
            return
        place = self._logs.directory_of(partition.log).id
        move = partition.move
        if move is not None and state.directory_of(node_id) == move.target.id:
            return  # the replica is being moved there
        if state.directory_of(node_id) != place:
            self._report([(place, partition.topic_id, partition.key.partition)], now_ms)
