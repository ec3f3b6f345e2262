"""Decisions for several brokers: leaders, ISR, reassignment, placement, registration."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.metadata.decisions.brokers.broker_registration import (
    plan_directories,
    plan_fence,
    plan_leave,
    plan_register,
    plan_unfence,
    plan_unregister,
)
from tailrace.metadata.decisions.replicas.leadership import (
    plan_elect_leaders,
)
from tailrace.metadata.decisions.replicas.reassignment import (
    list_reassignments,
    plan_alter_reassignments,
    plan_assign_directories,
)
from tailrace.metadata.decisions.replicas.replica_placement import UsableBroker, place_replicas, usable_brokers
from tailrace.metadata.decisions.topic_creation import plan_create_partitions, plan_create_topics
from tailrace.metadata.image.partition_registration import RECOVERING
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.steps import run_steps
from tailrace.protocol import messages as m
from tests.unit.metadata.cluster import Cluster, directory, registration


def elect(cluster: Cluster, kind: int) -> list[tuple[int, int]]:
    answer = cluster.carry_out(
        plan_elect_leaders(cluster.state, m.ElectLeadersRequest(election_type=kind, topic_partitions=None))
    )
    return [
        (one.partition_id, one.error_code)
        for topic in answer.replica_election_results
        for one in topic.partition_result
    ]


# Brokers that come and go


def test_when_a_broker_is_fenced_the_next_in_sync_replica_leads() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1, 2, 3], [2, 3], [3])
    cluster.carry_out(plan_fence(cluster.state, 1))
    one = cluster.partition()
    assert (one.leader, one.isr, one.leader_epoch, one.partition_epoch) == (2, (2, 3), 1, 1)
    assert cluster.partition(number=1).partition_epoch == 0, "it was not there"
    assert cluster.image.brokers[1].fenced


def test_the_last_in_sync_replica_stays_eligible() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1, 2], min_insync_replicas="2")
    cluster.carry_out(plan_fence(cluster.state, 1))
    one = cluster.partition()
    assert (one.leader, one.isr, one.elr) == (2, (2,), (1,))
    cluster.carry_out(plan_fence(cluster.state, 2))
    one = cluster.partition()
    assert (one.leader, one.isr, one.elr, one.last_known_elr) == (-1, (), (1, 2), (2,))
    cluster.carry_out(plan_unfence(cluster.state, 1))
    one = cluster.partition()
    assert (one.leader, one.isr, one.elr, one.leader_recovery_state) == (1, (1,), (2,), 0)


def test_without_elr_the_last_replica_stays_in_the_isr() -> None:
    cluster = Cluster(levels={"metadata.version": 30})
    cluster.add_topic("t", [1, 2])
    cluster.carry_out(plan_fence(cluster.state, 2))
    cluster.carry_out(plan_fence(cluster.state, 1))
    one = cluster.partition()
    assert (one.leader, one.isr, one.elr) == (-1, (1,), ())
    cluster.carry_out(plan_unfence(cluster.state, 2))
    assert cluster.partition().leader == -1
    cluster.carry_out(plan_unfence(cluster.state, 1))
    assert cluster.partition().leader == 1


def test_an_unclean_election_where_the_topic_allows_it() -> None:
    cluster = Cluster(levels={"metadata.version": 30})
    cluster.add_topic("t", [1, 2], unclean_leader_election_enable="true", isr=[1])
    cluster.carry_out(plan_fence(cluster.state, 1))
    one = cluster.partition()
    assert (one.leader, one.isr, one.leader_recovery_state) == (2, (2,), RECOVERING)


def test_a_broker_in_controlled_shutdown_leads_nothing_but_is_not_fenced_yet() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1, 2])
    cluster.carry_out(plan_leave(cluster.state, 1))
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2,))
    assert not cluster.image.brokers[1].fenced
    assert not cluster.image.is_active(1)
    assert not plan_leave(cluster.state, 1).records, "once is enough"


def test_a_start_after_an_unclean_stop_removes_the_broker_from_isr_and_elr() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1, 2])
    cluster.add_topic("u", [1], isr=[1])
    again = registration(1, incarnation_id=b"n" * 16, fenced=True)
    plan = plan_register(cluster.state, again, next_offset=500, previous_epoch=-1)
    assert cluster.carry_out(plan) == 500
    assert (cluster.partition().leader, cluster.partition().isr) == (2, (2,))
    lost = cluster.partition("u")
    assert (lost.leader, lost.isr, lost.elr, lost.last_known_elr) == (-1, (), (), (1,))
    assert cluster.image.brokers[1].epoch == 500
    assert cluster.image.brokers[1].fenced


def test_a_start_after_a_clean_stop_keeps_the_broker_in_the_elr() -> None:
    cluster = Cluster()
    cluster.add_topic("u", [1])
    cluster.carry_out(plan_leave(cluster.state, 1))
    cluster.carry_out(plan_fence(cluster.state, 1))
    again = registration(1, incarnation_id=b"n" * 16, fenced=True)
    cluster.carry_out(plan_register(cluster.state, again, next_offset=500, previous_epoch=101))
    assert cluster.partition("u").elr == (1,)
    cluster.carry_out(plan_unfence(cluster.state, 1))
    assert (cluster.partition("u").leader, cluster.partition("u").leader_recovery_state) == (1, 0)


def test_the_same_incarnation_amends_its_registration() -> None:
    cluster = Cluster()
    plan = plan_register(cluster.state, registration(1, rack="r"), next_offset=500, previous_epoch=-1)
    assert cluster.carry_out(plan) == 101
    assert cluster.image.brokers[1].rack == "r"
    assert not cluster.image.brokers[1].fenced


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"directories": ()}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": (directory(9), directory(9))}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": (bytes(16),)}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": (directory(2),)}, ErrorCode.INVALID_REGISTRATION),
        ({"features": {}}, ErrorCode.INVALID_REGISTRATION),
        ({"features": {"metadata.version": (7, 29)}}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": {"metadata.version": (7, 30)}}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_an_invalid_registration_is_refused(fields: dict[str, Any], code: ErrorCode) -> None:
    from tailrace.metadata.image.features import VersionRange

    if "features" in fields:
        fields = {"features": {name: VersionRange(*levels) for name, levels in fields["features"].items()}}
    with pytest.raises(KafkaError) as refusal:
        plan_register(
            Cluster().state, registration(1, incarnation_id=b"n" * 16, **fields), next_offset=5, previous_epoch=-1
        )
    assert refusal.value.code == code


def test_a_broker_is_unregistered() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1, 2])
    cluster.carry_out(plan_unregister(cluster.state, 1))
    assert set(cluster.image.brokers) == {2, 3}
    assert cluster.partition().leader == 2


def test_replicas_in_a_failed_directory_lose_their_leadership() -> None:
    two = (directory(1), directory(1, 1))
    cluster = Cluster([registration(1, directories=two), registration(2)])
    cluster.add_topic("t", [1, 2])
    assert cluster.image.default_directory(1) == bytes(15) + b"\x01", "which of the two, the broker decides"
    cluster.carry_out(plan_directories(cluster.state, 1, online=(directory(1, 1),)))
    assert cluster.partition().leader == 2
    assert cluster.image.brokers[1].directories == (directory(1, 1),)
    cluster.carry_out(plan_directories(cluster.state, 1, cordoned=(directory(1, 1),)))
    assert [one.id for one in usable_brokers(cluster.image)] == [2]
    assert not plan_directories(cluster.state, 1, cordoned=(directory(1, 1),)).records


def test_a_replica_that_was_moved_to_a_directory_is_recorded() -> None:
    two = (directory(1), directory(1, 1))
    cluster = Cluster([registration(1, directories=two), registration(2)])
    cluster.add_topic("t", [1, 2])
    topic_id = cluster.image.topics["t"].id
    results = cluster.carry_out(plan_assign_directories(cluster.state, 1, [(directory(1, 1), topic_id, 0)]))
    assert results == [ErrorCode.NONE]
    assert cluster.partition().directory_of(1) == directory(1, 1)
    assert cluster.partition().leader == 1
    assert plan_assign_directories(cluster.state, 2, [(directory(2), topic_id, 5)]).result == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    with pytest.raises(KafkaError, match="not registered"):
        plan_assign_directories(cluster.state, 9, [])


# Elections


def test_the_preferred_leader_is_elected_when_it_is_in_sync() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1, 2], [2, 1])
    cluster.carry_out(plan_fence(cluster.state, 1))
    assert elect(cluster, 0) == [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]
    cluster.carry_out(plan_unfence(cluster.state, 1))
    assert elect(cluster, 0) == [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)], "not in sync yet"
    cluster.set_isr([2, 1])
    assert elect(cluster, 0) == [(0, ErrorCode.NONE)]
    assert cluster.partition().leader == 1


def test_an_unclean_election_on_request() -> None:
    cluster = Cluster(levels={"metadata.version": 30})
    cluster.add_topic("t", [1, 2], isr=[1])
    cluster.carry_out(plan_fence(cluster.state, 1))
    assert cluster.partition().leader == -1
    assert elect(cluster, 1) == [(0, ErrorCode.NONE)]
    assert (cluster.partition().leader, cluster.partition().leader_recovery_state) == (2, RECOVERING)
    cluster.carry_out(plan_fence(cluster.state, 2))
    assert elect(cluster, 1) == [(0, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)]


# Reassignment


def reassign(cluster: Cluster, replicas: list[int] | None, **fields: Any) -> int:
    request = m.AlterPartitionReassignmentsRequest
    partition = request.ReassignablePartition(partition_index=0, replicas=replicas)
    asked = request(topics=[request.ReassignableTopic(name="t", partitions=[partition])], **fields)
    answer = cluster.carry_out(plan_alter_reassignments(cluster.state, asked))
    code: int = answer.responses[0].partitions[0].error_code
    return code


def test_a_reassignment_adds_waits_and_removes() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1, 2])
    assert reassign(cluster, [3, 2]) == ErrorCode.NONE
    one = cluster.partition()
    assert (one.replicas, one.adding_replicas, one.removing_replicas, one.leader) == ((3, 2, 1), (3,), (1,), 1)
    assert one.directory_of(3) == directory(3)
    reported = list_reassignments(cluster.state, m.ListPartitionReassignmentsRequest(topics=None))
    assert reported.topics[0].partitions[0].adding_replicas == [3]
    cluster.set_isr([1, 2, 3])
    one = cluster.partition()
    assert (one.replicas, one.isr, one.leader, one.is_reassigning) == ((3, 2), (2, 3), 3, False)
    assert not list_reassignments(cluster.state, m.ListPartitionReassignmentsRequest(topics=None)).topics


def test_a_reassignment_is_cancelled() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1, 2])
    assert reassign(cluster, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    reassign(cluster, [3])
    assert reassign(cluster, None) == ErrorCode.NONE
    one = cluster.partition()
    assert (one.replicas, one.adding_replicas, one.removing_replicas) == ((1, 2), (), ())


def test_the_replication_factor_changes_only_where_that_is_allowed() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1, 2])
    assert reassign(cluster, [1, 2, 3], allow_replication_factor_change=False) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(cluster, [1, 3], allow_replication_factor_change=False) == ErrorCode.NONE


# Placement


def test_replicas_are_placed_on_racks_in_turn() -> None:
    brokers = [UsableBroker(number, "abc"[number % 3]) for number in range(6)]
    placed = list(place_replicas(brokers, 12, 3, lambda _: 0))
    for replicas in placed:
        assert {number % 3 for number in replicas} == {0, 1, 2}, "one in each rack"
    leaders = [replicas[0] for replicas in placed]
    assert all(leaders.count(number) == 2 for number in range(6)), "leaders spread evenly"


def test_fenced_brokers_get_replicas_only_when_the_others_are_used_up() -> None:
    brokers = [UsableBroker(1), UsableBroker(2, fenced=True), UsableBroker(3)]
    for replicas in place_replicas(brokers, 6, 2, lambda _: 0):
        assert set(replicas) == {1, 3}
    for replicas in place_replicas(brokers, 6, 3, lambda _: 0):
        assert replicas[2] == 2


def test_new_topics_and_partitions_are_spread() -> None:
    cluster = Cluster()
    create = m.CreateTopicsRequest
    topic = create.CreatableTopic(name="t", num_partitions=3, replication_factor=2)
    answer = cluster.carry_out(run_steps(plan_create_topics(cluster.state, create(topics=[topic])), 0))
    assert answer.topics[0].replication_factor == 2
    assert {one.leader for one in cluster.image.topics["t"].partitions.values()} == {1, 2, 3}
    assert cluster.partition().directories == tuple(directory(one) for one in cluster.partition().replicas)
    cluster.carry_out(plan_fence(cluster.state, 2))
    more = m.CreatePartitionsRequest
    wanted = more.CreatePartitionsTopic(name="t", count=6, assignments=None)
    cluster.carry_out(run_steps(plan_create_partitions(cluster.state, more(topics=[wanted])), 0))
    assert all(2 not in cluster.partition(number=number).isr for number in (3, 4, 5))


def test_topics_that_may_not_be_created_and_topics_that_may_not_be_described_get_different_errors() -> None:
    cluster = Cluster()
    create = m.CreateTopicsRequest
    request = create(
        topics=[
            create.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("no", "blind", "yes")
        ]
    )
    steps = plan_create_topics(
        cluster.state, request, may_create=lambda name: name != "no", may_describe=lambda name: name == "yes"
    )
    plan = run_steps(steps, 0)
    reported = {
        one.name: (one.error_code, one.topic_config_error_code, bool(one.configs)) for one in plan.result.topics
    }
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert reported == {"no": (refused, 0, False), "blind": (0, refused, False), "yes": (0, 0, True)}
    assert sum(isinstance(record, m.TopicRecord) for record in plan.records) == 2
