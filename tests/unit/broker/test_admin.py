"""Log directories, elections, reassignments, quotas, features, the quorum, through the broker; and who may ask."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.broker.requests.api_table import API_TABLE
from tailrace.broker.security.standard_authorizer import StandardAuthorizer
from tailrace.metadata.image.features import METADATA_VERSION
from tailrace.model.errors import ErrorCode
from tailrace.protocol.messages import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeClientQuotasRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    ElectLeadersRequest,
    ListConfigResourcesRequest,
    ListPartitionReassignmentsRequest,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
)
from tests.support.memory_node import Client, start, with_authorizer


@pytest.fixture
def client() -> Client:
    client = Client(start())
    topic = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
    assert client.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
    return client


@pytest.mark.parametrize("version", range(6))
def test_describe_log_dirs_of_every_version_returns_the_partitions(client: Client, version: int) -> None:
    (everything,) = client.ask(DescribeLogDirsRequest(topics=None), version).results
    assert (everything.log_dir, [topic.name for topic in everything.topics]) == ("/data", ["orders"])
    assert sorted(one.partition_index for one in everything.topics[0].partitions) == [0, 1]
    asked = DescribeLogDirsRequest.DescribableLogDirTopic(topic="orders", partitions=[1, 7])
    (some,) = client.ask(DescribeLogDirsRequest(topics=[asked]), version).results
    assert [one.partition_index for one in some.topics[0].partitions] == [1]


@pytest.mark.parametrize("version", range(3))
def test_an_election_of_the_current_leader_gets_election_not_needed(client: Client, version: int) -> None:
    asked = ElectLeadersRequest.TopicPartitions(topic="orders", partitions=[0, 9])
    (topic,) = client.ask(ElectLeadersRequest(topic_partitions=[asked]), version).replica_election_results
    codes = {one.partition_id: one.error_code for one in topic.partition_result}
    assert codes == {0: ErrorCode.ELECTION_NOT_NEEDED, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("version", range(2))
def test_reassignments_on_one_node_are_accepted_only_to_itself(client: Client, version: int) -> None:
    parts = [
        AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=number, replicas=replicas)
        for number, replicas in ((0, [1]), (1, [2]))
    ]
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic(name="orders", partitions=parts)
    (answer,) = client.ask(AlterPartitionReassignmentsRequest(topics=[topic]), version).responses
    assert [one.error_code for one in answer.partitions] == [0, ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    assert client.ask(ListPartitionReassignmentsRequest(topics=None), 0).topics == []


@pytest.mark.parametrize("version", range(2))
def test_quotas_can_be_altered_and_described(client: Client, version: int) -> None:
    entry = AlterClientQuotasRequest.EntryData(
        entity=[AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="alice")],
        ops=[AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=1000.0)],
    )
    assert client.ask(AlterClientQuotasRequest(entries=[entry]), version).entries[0].error_code == 0
    answer = client.ask(DescribeClientQuotasRequest(), version)
    assert [(one.key, one.value) for one in answer.entries[0].values] == [("producer_byte_rate", 1000.0)]
    odd = DescribeClientQuotasRequest.ComponentData(entity_type="planet", match_type=2)
    refused = client.ask(DescribeClientQuotasRequest(components=[odd]), version)
    assert (refused.error_code, refused.entries) == (ErrorCode.UNSUPPORTED_VERSION, None)


@pytest.mark.parametrize("version", range(3))
def test_an_unsupported_feature_level_is_refused(client: Client, version: int) -> None:
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature=METADATA_VERSION, max_version_level=99)
    answer = client.ask(UpdateFeaturesRequest(feature_updates=[update]), version)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION


@pytest.mark.parametrize("version", range(3))
def test_describe_quorum_returns_this_node_as_leader_and_only_voter(client: Client, version: int) -> None:
    asked = DescribeQuorumRequest.TopicData(
        topic_name="__cluster_metadata", partitions=[DescribeQuorumRequest.PartitionData(partition_index=0)]
    )
    (topic,) = client.ask(DescribeQuorumRequest(topics=[asked]), version).topics
    (partition,) = topic.partitions
    assert (partition.leader_id, [voter.replica_id for voter in partition.current_voters]) == (1, [1])


def test_a_running_broker_registers_again_after_unregister_broker(client: Client) -> None:
    before = client.broker.services.controller.image.brokers[1].epoch
    assert client.ask(UnregisterBrokerRequest(broker_id=1), 0).error_code == 0
    assert client.broker.services.controller.image.brokers[1].epoch > before
    assert client.ask(UnregisterBrokerRequest(broker_id=5), 0).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


@pytest.mark.parametrize("version", range(5))
def test_api_versions_returns_features_from_version_3_on(client: Client, version: int) -> None:
    answer = client.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), version)
    finalized = {one.name: one.max_version_level for one in answer.finalized_features}
    supported = {one.name for one in answer.supported_features}
    if version < 3:
        assert (finalized, supported, answer.finalized_features_epoch) == ({}, set(), -1)
        return
    assert finalized[METADATA_VERSION] == client.broker.services.controller.image.metadata_version
    assert answer.finalized_features_epoch == client.broker.services.controller.image.offset
    assert ("group.version" in supported) == (version >= 4)


QUOTA = AlterClientQuotasRequest.EntryData(
    entity=[AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="a")]
)


@pytest.mark.parametrize(
    "request_",
    [
        DescribeLogDirsRequest(topics=None),
        ElectLeadersRequest(topic_partitions=[ElectLeadersRequest.TopicPartitions(topic="orders", partitions=[0])]),
        AlterPartitionReassignmentsRequest(),
        ListPartitionReassignmentsRequest(topics=None),
        AlterClientQuotasRequest(entries=[QUOTA]),
        DescribeClientQuotasRequest(),
        UpdateFeaturesRequest(),
        DescribeQuorumRequest(),
        UnregisterBrokerRequest(broker_id=1),
        ListConfigResourcesRequest(),
    ],
    ids=lambda one: one.SCHEMA.name,
)
def test_requests_without_a_right_on_the_cluster_are_refused_in_every_version(client: Client, request_: Any) -> None:
    client.broker = with_authorizer(client.broker, StandardAuthorizer())
    row = API_TABLE[request_.SCHEMA.api_key]
    for version in range(row.min_version, row.max_version + 1):
        answer = client.ask(request_, version)
        codes = [getattr(answer, "error_code", 0)]
        codes += [one.error_code for one in getattr(answer, "entries", None) or []]
        for topic in getattr(answer, "replica_election_results", []):
            codes += [one.error_code for one in topic.partition_result]
        if request_.SCHEMA.name == "DescribeLogDirsRequest" and version < 3:
            assert answer.results == []  # there is no place for the error
        else:
            assert ErrorCode.CLUSTER_AUTHORIZATION_FAILED in codes
