"""GroupCommits: how far a stream is, committed to a consumer group, so that lag tools see it.

Only a picture: Spark's checkpoint says where a stream goes on, and nothing is ever read from the group. So a cluster
that cannot take a commit just now is no reason to end a query; the next batch commits what is later anyway. A group
that refuses for good, because it has members or is not allowed, ends it and is told.
"""

from __future__ import annotations

import logging

from tailrace.client.cluster.cluster import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.errors import ClientError
from tailrace.client.groups.group_offsets import NotedOffset, commit_offsets
from tailrace.spark.source.errors import NotCommitted
from tailrace.spark.source.options import WireOptions
from tailrace.spark.source.planning.offset_ranges import Offsets

_log = logging.getLogger(__name__)


class GroupCommits:
    def __init__(self, group: str, wire: WireOptions) -> None:
        self._group = group
        self._cluster = ClusterClient(wire.bootstrap, wire.settings)
        self._coordinators = Coordinators(self._cluster)

    def commit(self, offsets: Offsets) -> None:
        noted = {partition: NotedOffset(offset, "") for partition, offset in offsets.items()}
        try:
            commit_offsets(self._coordinators, self._group, noted)
        except ClientError as error:
            if not error.is_retriable:
                raise NotCommitted(f"offsets cannot be committed to group {self._group}: {error}") from None
            _log.warning("offsets were not committed to group %s this time: %s", self._group, error)

    def close(self) -> None:
        self._cluster.close()
