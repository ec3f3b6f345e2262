"""Leader elections: the preferred replica, or an unclean election of a replica that is out of sync."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import IntEnum

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import Refused
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.codegen.field_versions import first_version_with
from tailrace.protocol.messages import ElectLeadersRequest, ElectLeadersResponse

_FIRST_WITH_UNCLEAN = first_version_with("ElectLeadersRequest", "election_type")


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    cluster: ClusterClient, kind: ElectionType, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, Refused | None]:
    """Elect leaders of these partitions (None: all). Return those with an election, and the errors of the others.

    Partitions that need no election are omitted.
    """
    numbers: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions or ():
        numbers[topic].append(number)
    wanted = [ElectLeadersRequest.TopicPartitions(topic=name, partitions=found) for name, found in numbers.items()]
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=None if partitions is None else wanted,
        timeout_ms=cluster.settings.request_timeout_ms,
    )

    def check(answer: ElectLeadersResponse) -> None:
        if answer.error_code:
            raise Refused("leader election", answer.error_code)

    answer: ElectLeadersResponse = cluster.change(request, check, version_min=_FIRST_WITH_UNCLEAN)
    found: dict[TopicPartition, Refused | None] = {}
    for result in answer.replica_election_results:
        for one in result.partition_result:
            partition = TopicPartition(result.topic, one.partition_id)
            if one.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                refusal = Refused(str(partition), one.error_code, one.error_message) if one.error_code else None
                found[partition] = refusal
    return dict(sorted(found.items()))
