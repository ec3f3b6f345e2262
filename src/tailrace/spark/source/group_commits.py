"""GroupCommits: commits the progress of a stream to a consumer group, so that lag tools show it.

Spark's checkpoint decides where a stream resumes; the offsets of the group are never read. So a commit that fails for
now does not end the query: the next batch commits later offsets anyway. A permanent refusal, because the group has
members or the client lacks permission, ends the query with an error.
"""

from __future__ import annotations

import logging

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.errors import ClientError
from tailrace.client.groups.group_offsets import OffsetAndMetadata, commit_offsets
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
        commits = {partition: OffsetAndMetadata(offset, "") for partition, offset in offsets.items()}
        try:
            commit_offsets(self._coordinators, self._group, commits)
        except ClientError as error:
            if not error.is_retriable:
                raise NotCommitted(f"offsets cannot be committed to group {self._group}: {error}") from None
            _log.warning("cannot commit offsets to group %s, the next batch will retry: %s", self._group, error)

    def close(self) -> None:
        self._cluster.close()
