"""The controller quorum of a cluster: its leader, and the progress of voters and observers."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import Refused, only
from tailrace.client.network.address import Address
from tailrace.model.ids import LeaderEpoch, Offset, TopicId
from tailrace.protocol.codegen.schema import ZERO_UUID
from tailrace.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse

_TOPIC: Final = "__cluster_metadata"


class QuorumReplica(NamedTuple):
    """A voter or an observer of the quorum."""

    node_id: int
    end_offset: Offset  # -1: unknown to the leader
    last_fetch_ms: int  # by the leader's clock; -1: unknown
    last_caught_up_ms: int
    directory_id: str = ""  # a node with a new disk is listed twice for a while


class Quorum(NamedTuple):
    leader: int
    epoch: LeaderEpoch
    high_watermark: Offset
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    addresses: dict[int, Address]  # of the voters, if the cluster reports them

    @property
    def end_offset(self) -> Offset:
        """The log end offset of the leader, which lags are measured against."""
        return next((one.end_offset for one in self.voters if one.node_id == self.leader), self.high_watermark)

    @property
    def now_ms(self) -> int:
        """The leader's clock when it responded: the leader itself is always caught up."""
        return next((one.last_caught_up_ms for one in self.voters if one.node_id == self.leader), -1)

    def lag(self, replica: QuorumReplica) -> int | None:
        return None if replica.end_offset < 0 else max(0, self.end_offset - replica.end_offset)

    def behind_ms(self, replica: QuorumReplica) -> int | None:
        """Return the time since the replica was last caught up; None if unknown."""
        known = self.now_ms >= 0 and replica.last_caught_up_ms >= 0
        return max(0, self.now_ms - replica.last_caught_up_ms) if known else None


def describe_quorum(cluster: ClusterClient) -> Quorum:
    request = DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequest.TopicData(
                topic_name=_TOPIC, partitions=[DescribeQuorumRequest.PartitionData(partition_index=0)]
            )
        ]
    )

    def check(answer: DescribeQuorumResponse) -> None:
        errors = [(answer.error_code, answer.error_message)]
        errors += [(one.error_code, one.error_message) for topic in answer.topics for one in topic.partitions]
        for code, message in errors:
            if code:
                raise Refused("the controller quorum", code, message)

    answer: DescribeQuorumResponse = cluster.ask_any(request, check=check)
    found = only(only(answer.topics, _TOPIC).partitions, _TOPIC)
    return Quorum(
        found.leader_id,
        found.leader_epoch,
        found.high_watermark,
        _replicas(found.current_voters),
        _replicas(found.observers),
        {node.node_id: Address(one.host, one.port) for node in answer.nodes for one in node.listeners[:1]},
    )


def _replicas(states: Iterable[DescribeQuorumResponse.ReplicaState]) -> tuple[QuorumReplica, ...]:
    replicas = (
        QuorumReplica(
            one.replica_id,
            one.log_end_offset,
            one.last_fetch_timestamp,
            one.last_caught_up_timestamp,
            "" if one.replica_directory_id == ZERO_UUID else str(TopicId(uuid.UUID(bytes=one.replica_directory_id))),
        )
        for one in states
    )
    return tuple(sorted(replicas))
