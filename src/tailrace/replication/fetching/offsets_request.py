"""The ListOffsets request of a follower whose log end the leader does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tailrace.model.ids import BrokerId
from tailrace.protocol.messages import ListOffsetsRequest
from tailrace.replication.fetching.followed import Followed

LOCAL_START_VERSION: Final = 8  # the first version with EARLIEST_LOCAL
LATEST: Final = -1
EARLIEST_LOCAL: Final = -4


def offsets_request(broker_id: BrokerId, out_of_range: Sequence[Followed], timestamp: int) -> ListOffsetsRequest:
    """Return a request for the leader's end (LATEST) or start (EARLIEST_LOCAL) of these partitions."""
    topics: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
    for one in out_of_range:
        topics.setdefault(one.partition.key.topic, []).append(
            ListOffsetsRequest.ListOffsetsPartition(
                partition_index=one.partition.key.partition,
                current_leader_epoch=one.role.leader_epoch,
                timestamp=timestamp,
            )
        )
    return ListOffsetsRequest(
        replica_id=broker_id,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=asked) for name, asked in topics.items()],
    )
