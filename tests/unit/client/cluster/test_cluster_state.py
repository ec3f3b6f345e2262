"""The state of a cluster's partitions, brokers and controllers, and its text."""

from __future__ import annotations

from tailrace.cli.cluster.cluster_status_view import show, state_json
from tailrace.client.cluster.cluster_state import BrokerState, ClusterState, LogDirectoryState, PartitionState
from tailrace.client.cluster.quorum import Quorum, QuorumReplica
from tailrace.client.cluster.replicas import Reassignment
from tailrace.client.network.address import Address
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition


def partition(
    number: int = 0,
    *,
    leader: int | None = 1,
    isr: tuple[int, ...] = (1, 2, 3),
    min_isr: int | None = None,
    moving: Reassignment | None = None,
    ends: dict[int, int] | None = None,
    replicas: tuple[int, ...] = (1, 2, 3),
) -> PartitionState:
    return PartitionState(TopicPartition("orders", number), leader, 4, replicas, isr, min_isr, moving, ends or {})


def quorum(*voters: QuorumReplica) -> Quorum:
    return Quorum(3000, 7, 500, voters, (QuorumReplica(1, 480, 90_000, 99_900),), {3000: Address("c1", 9093)})


LEADER = QuorumReplica(3000, 510, 100_000, 100_000)


def broker(node_id: int = 1, **facts: object) -> BrokerState:
    known: dict[str, object] = {
        "rack": None, "is_fenced": False, "leads": 0, "replicas": 0, "out_of_sync": 0, "max_lag": 0,
        "directories": (), "error": None,
    }  # fmt: skip
    return BrokerState(node_id, Address("b", 9092), **{**known, **facts})  # type: ignore[arg-type]


def state(*partitions: PartitionState, brokers: tuple[BrokerState, ...] = ()) -> ClusterState:
    return ClusterState("id", quorum(LEADER), brokers, partitions)


def test_a_lag_is_the_end_offset_of_the_leader_minus_that_of_the_follower() -> None:
    one = partition(ends={1: 100, 2: 60, 3: 100})
    assert (one.lags, one.max_lag) == ({2: 40, 3: 0}, 40)


def test_a_lag_is_never_negative() -> None:
    assert partition(ends={1: 100, 2: 101, 3: 99}).lags == {2: 0, 3: 1}


def test_the_lag_of_an_unreachable_replica_is_unknown() -> None:
    assert partition(ends={1: 100, 3: 90}).lags == {2: None, 3: 10}
    assert partition(leader=None, ends={2: 5, 3: 5}).lags == {1: None, 2: None, 3: None}


def test_a_replica_that_a_reassignment_adds_is_not_out_of_sync() -> None:
    moving = Reassignment((1, 2, 3, 4), (4,), (1,))
    one = partition(replicas=(1, 2, 3, 4), isr=(1, 2, 3), moving=moving)
    assert not one.is_under_replicated
    assert partition(replicas=(1, 2, 3, 4), isr=(1, 2), moving=moving).out_of_sync == (3,)


def test_min_isr_is_limited_by_the_number_of_replicas() -> None:
    assert partition(isr=(1,), min_isr=2).is_under_min_isr
    assert not partition(isr=(1, 2), min_isr=2).is_under_min_isr
    assert not partition(replicas=(1, 2), isr=(1, 2), min_isr=3).is_under_min_isr


def test_problems_are_counted() -> None:
    unhealthy = state(
        partition(0),
        partition(1, isr=(1, 2), min_isr=2),
        partition(2, isr=(1,), min_isr=2),
        partition(3, leader=None, isr=(2,), min_isr=2),
    )
    assert unhealthy.problems() == [
        "1 partition without a leader",
        "3 partitions under-replicated",
        "2 partitions under min.insync.replicas",
    ]
    assert state(partition()).problems() == []
    assert state(partition(), brokers=(broker(1), broker(2, is_fenced=True))).problems(2) == [
        "active brokers: 1, expected: 2"
    ]


def test_failed_log_directories_and_silent_brokers_are_problems() -> None:
    failed = LogDirectoryState("/data/2", ErrorCode.KAFKA_STORAGE_ERROR, 0, -1, -1)
    unhealthy = state(brokers=(broker(1, directories=(failed,)), broker(2, error="it did not answer")))
    assert unhealthy.problems() == [
        "broker 1: /data/2: the broker's disk failed (KAFKA_STORAGE_ERROR)",
        "broker 2 does not respond: it did not answer",
    ]


def test_a_controller_that_does_not_follow_the_leader_is_a_problem() -> None:
    there, gone = QuorumReplica(3001, 505, 99_000, 99_500), QuorumReplica(3002, 100, 60_000, 60_000)
    unhealthy = ClusterState("id", quorum(LEADER, there, gone), (), ())
    assert unhealthy.problems() == ["controller 3002 does not follow the leader of the quorum"]
    assert unhealthy.quorum is not None
    assert [unhealthy.quorum.lag(one) for one in (LEADER, there, gone)] == [0, 5, 410]
    assert unhealthy.quorum.behind_ms(gone) == 40_000


def test_a_node_with_a_new_directory_is_shown_once() -> None:
    twice = (QuorumReplica(1, 300, 0, 50_000, "old"), QuorumReplica(1, 510, 0, 99_990, "new"))
    lines = show(ClusterState("id", quorum(LEADER)._replace(observers=twice), (), ()), [], with_all=False)
    assert [line.split()[-3:] for line in lines if "observer" in line] == [["510", "0", "now"]]


def test_unhealthy_partitions_are_listed_worst_first_and_all_with_all() -> None:
    unhealthy = state(
        *(partition(n, isr=(1, 2), min_isr=2) for n in range(30)), partition(30, leader=None), partition(31)
    )
    lines = show(unhealthy, unhealthy.problems(), with_all=False)
    listed = [line.split()[0] for line in lines if line.startswith("orders-")]
    assert (len(listed), listed[0]) == (20, "orders-30")
    assert lines[-1] == "… and 11 more: --all lists every partition"
    assert sum(line.startswith("orders-") for line in show(unhealthy, [], with_all=True)) == 32
    assert len(state_json(unhealthy, [], with_all=False)["partitions"]) == 31


def test_lagging_partitions_are_listed_by_decreasing_lag() -> None:
    behind = state(*(partition(n, ends={1: 100, 2: 100 - n, 3: 100}) for n in range(4)))
    lines = show(behind, behind.problems(), with_all=False)
    assert [line.split()[0] for line in lines if line.startswith("orders-")] == ["orders-3", "orders-2", "orders-1"]
    assert "largest lag of a follower: 3 records, orders-3" in lines


def test_the_free_space_of_a_shared_volume_counts_once() -> None:
    twice = tuple(LogDirectoryState(path, 0, 10, 1 << 40, 1 << 30) for path in ("/a", "/b"))
    lines = show(state(brokers=(broker(directories=twice),)), [], with_all=False)
    (row,) = [line.split() for line in lines if " active " in line]
    assert row[-4:] == ["20", "B", "1.0", "GB"]
