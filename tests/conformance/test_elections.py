"""Leaders and in-sync replicas below real controllers, on Tailrace and Kafka brokers: lagging followers, leaders that
miss records, and replicas whose broker was away.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from tailrace.protocol.messages import DescribeQuorumRequest
from tests.conformance.test_replication import check_nothing_lost
from tests.support.both_controllers import KINDS, controllers_of
from tests.support.confluent import consume, produce, watermarks
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation, kafka_installation
from tests.support.raw_client import RawClient
from tests.support.replicated_cluster import PATIENCE_S, Node, ReplicatedCluster, brokers_below, eventually, frozen
from tests.support.steady_load import IDEMPOTENT, ONCE, SteadyLoad

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
# Long enough that a stopped broker leaves the ISR before its session expires.
CONTROLLERS = {"broker.session.timeout.ms": "10000", "unclean.leader.election.interval.ms": "1000"}
BROKERS = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "broker.heartbeat.interval.ms": "500",
    "replica.fetch.backoff.ms": "200",
    "replica.lag.time.max.ms": "3000",
    "log.retention.check.interval.ms": "1000",
}
ONE_ACK = {"acks": "1", "enable.idempotence": False}
KAFKA = {"log.initial.task.delay.ms": "500"}  # how long Kafka waits before its first check


@pytest.fixture(scope="module", params=KINDS)
def brokers(
    request: pytest.FixtureRequest, kafka: KafkaInstallation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ReplicatedCluster]:
    tmp_path = tmp_path_factory.mktemp("trio")
    with (
        controllers_of(request.param, kafka, tmp_path, properties=CONTROLLERS) as controllers,
        brokers_below(controllers, tmp_path, BROKERS, ours=[1, 2], theirs=[3], of_one={3: KAFKA}) as cluster,
    ):
        yield cluster


@pytest.fixture
def trio(brokers: ReplicatedCluster) -> ReplicatedCluster:
    """Return brokers 1 and 2 (Tailrace) and 3 (Apache Kafka). All run, even after a test that failed with one down."""
    for number, one in brokers.brokers.items():
        if one.process is None:
            brokers.start(number)
    return brokers


def check_kept(cluster: ReplicatedCluster, topic: str, acknowledged: dict[int, bytes]) -> None:
    found = {one.offset: one.value for one in consume(cluster.bootstrap, topic, 0)}
    assert {offset: found.get(offset) for offset in acknowledged} == acknowledged


def values(bootstrap: str, topic: str, start: int = 0) -> list[bytes | None]:
    return [one.value for one in consume(bootstrap, topic, 0, start)]


# In sync


@pytest.mark.parametrize(("leader", "stopped"), [(1, 2), (1, 3), (3, 1)])
def test_a_stopped_follower_leaves_the_isr_and_rejoins_it(trio: ReplicatedCluster, leader: int, stopped: int) -> None:
    topic = f"stopped-{leader}-{stopped}"
    other = 6 - leader - stopped
    trio.create(topic, [[leader, other, stopped]], min_insync_replicas="2")
    with SteadyLoad(trio[leader].bootstrap, topic, ONCE, pause_s=0.02) as load:
        load.await_more()
        with frozen(trio[stopped]):
            eventually(
                lambda: sorted(trio_state(trio, leader, topic)[1]) == sorted([leader, other]),
                "the stopped replica has left the ISR",
            )
            load.await_more()
        trio.await_isr(topic, 0, [1, 2, 3])
        load.await_more()
    check_kept(trio, topic, load.acknowledged)
    trio.await_same(topic, 0, [1, 2, 3])


def trio_state(cluster: ReplicatedCluster, asked: int, topic: str) -> tuple[int, list[int]]:
    """Return the state as one broker reports it, because another one may not respond at all."""
    return ReplicatedCluster({asked: cluster[asked]}).state(topic, 0)


@pytest.mark.parametrize(("leader", "stopped"), [(1, 3), (3, 1)])
def test_acks_all_times_out_and_is_then_refused_when_too_few_replicas_are_in_sync(
    trio: ReplicatedCluster, leader: int, stopped: int
) -> None:
    """A record that was accepted while enough replicas were in sync waits for them; later records are refused."""
    topic = f"few-{leader}"
    trio.create(topic, [[leader, stopped]], min_insync_replicas="2")
    assert refusal(trio[leader], topic, b"a") is None
    with frozen(trio[stopped]):
        assert refusal(trio[leader], topic, b"b", **{"request.timeout.ms": 2000}) == "REQUEST_TIMED_OUT"
        eventually(lambda: trio_state(trio, leader, topic)[1] == [leader], "the stopped replica has left the ISR")
        assert refusal(trio[leader], topic, b"c") == "NOT_ENOUGH_REPLICAS"
        assert values(trio[leader].bootstrap, topic) == [b"a"]
    trio.await_isr(topic, 0, [leader, stopped])
    assert refusal(trio[leader], topic, b"d") is None
    trio.await_same(topic, 0, [leader, stopped])
    assert values(trio.bootstrap, topic) == [b"a", b"b", b"d"]


def refusal(node: Node, topic: str, value: bytes, **settings: Any) -> str | None:
    """Return the error of producing one record with acks=all, or None."""
    answers: list[Any] = []
    producer = Producer({"bootstrap.servers": node.bootstrap, "acks": "all", "retries": 0, **settings})
    producer.produce(topic, value, partition=0, on_delivery=lambda error, _: answers.append(error))
    assert producer.flush(PATIENCE_S) == 0
    return None if answers[0] is None else str(answers[0].name())


# Leaders that miss records


@pytest.mark.parametrize(("leader", "behind"), [(1, 2), (1, 3), (3, 1)])
def test_an_unclean_leader_continues_from_its_own_log_end(trio: ReplicatedCluster, leader: int, behind: int) -> None:
    topic = f"unclean-{leader}-{behind}"
    trio.create(topic, [[leader, behind]], unclean_leader_election_enable="true")
    alone = {"batch.num.messages": 1}
    produce(trio.bootstrap, topic, 0, [b"%d" % one for one in range(10)], acks="all", **alone)
    trio.kill(behind)
    trio.await_isr(topic, 0, [leader])
    produce(trio[leader].bootstrap, topic, 0, [b"lost-%d" % one for one in range(10)], **alone)
    trio.kill(leader)
    trio.start(behind)
    trio.await_leader(topic, 0, [behind])
    assert values(trio[behind].bootstrap, topic) == [b"%d" % one for one in range(10)]
    assert produce(trio[behind].bootstrap, topic, 0, [b"new-%d" % one for one in range(5)], **alone) == list(
        range(10, 15)
    )
    trio.start(leader)
    trio.await_isr(topic, 0, [leader, behind])
    trio.await_same(topic, 0, [leader, behind])
    kept = [*(b"%d" % one for one in range(10)), *(b"new-%d" % one for one in range(5))]
    assert values(trio.bootstrap, topic) == kept
    files = [trio[one].data / f"{topic}-0" / "leader-epoch-checkpoint" for one in (leader, behind)]
    eventually(lambda: len({one.read_text() for one in files}) == 1, "the same leader epochs")
    # The former leader leads again, in a later epoch, and has lost its own records.
    elect(trio, topic, "preferred")
    trio.await_leader(topic, 0, [leader])
    assert values(trio.bootstrap, topic) == kept


@pytest.mark.parametrize(("leader", "behind"), [(1, 2), (1, 3), (3, 1)])
def test_a_consumer_past_a_truncation_gets_an_error(trio: ReplicatedCluster, leader: int, behind: int) -> None:
    topic = f"gone-{leader}-{behind}"
    trio.create(topic, [[leader, behind]], unclean_leader_election_enable="true")
    alone = {"batch.num.messages": 1}
    produce(trio.bootstrap, topic, 0, [b"%d" % one for one in range(10)], acks="all", **alone)
    trio.kill(behind)
    trio.await_isr(topic, 0, [leader])
    produce(trio[leader].bootstrap, topic, 0, [b"lost-%d" % one for one in range(10)], **alone)
    consumer = Consumer(
        {
            "bootstrap.servers": trio.bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "topic.metadata.refresh.interval.ms": 500,
        }
    )
    reported: list[Any] = []
    got: list[int] = []

    def poll() -> bool:
        for message in consumer.consume(100, 0.2):
            if message.error() is None:
                got.append(message.offset())
            elif message.topic() == topic:
                reported.append(message.error().name())
        return bool(reported) or len(got) >= 20

    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        eventually(poll, "everything is read")
        assert (got, reported) == (list(range(20)), [])
        trio.kill(leader)
        trio.start(behind)
        trio.await_leader(topic, 0, [behind])
        produce(trio[behind].bootstrap, topic, 0, [b"new-%d" % one for one in range(5)], **alone)
        got.clear()
        eventually(poll, "the consumer gets the error")
    finally:
        consumer.close()
        trio.start(leader)
    assert (got, reported) == ([], ["_AUTO_OFFSET_RESET"])
    trio.await_isr(topic, 0, [leader, behind])


def elect(cluster: ReplicatedCluster, topic: str, kind: str) -> str:
    return kafka_installation().tool(
        ELECTION,
        *("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--partition", "0", "--election-type", kind),
    )


@pytest.mark.parametrize(("leader", "behind"), [(1, 2), (3, 1)])
def test_no_unclean_leader_is_elected_unless_the_topic_allows_it(
    trio: ReplicatedCluster, leader: int, behind: int
) -> None:
    topic = f"refused-{leader}-{behind}"
    trio.create(topic, [[leader, behind]])
    produce(trio.bootstrap, topic, 0, [b"a", b"b"], acks="all")
    trio.kill(behind)
    trio.await_isr(topic, 0, [leader])
    produce(trio[leader].bootstrap, topic, 0, [b"lost"])
    trio.kill(leader)
    trio.start(behind)
    other = ReplicatedCluster({behind: trio[behind]})
    eventually(lambda: other.state(topic, 0)[0] == -1, "the partition has no leader")
    time.sleep(3)  # longer than the controller's interval of looking for partitions without a leader
    assert other.state(topic, 0)[0] == -1
    elect(other, topic, "unclean")
    other.await_leader(topic, 0, [behind])
    assert values(other.bootstrap, topic) == [b"a", b"b"]
    trio.start(leader)
    trio.await_isr(topic, 0, [leader, behind])
    trio.await_same(topic, 0, [leader, behind])


# Replicas whose broker was away


@pytest.mark.parametrize("away", [2, 3])
def test_a_topic_recreated_while_a_follower_was_away_gets_a_new_replica(trio: ReplicatedCluster, away: int) -> None:
    topic = f"recreated-{away}"
    admin = AdminClient({"bootstrap.servers": trio[1].bootstrap})
    trio.create(topic, [[1, away]])
    produce(trio.bootstrap, topic, 0, [b"old-%d" % one for one in range(100)], acks="all")
    trio.kill(away)
    trio.await_isr(topic, 0, [1])
    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    eventually(lambda: topic not in admin.list_topics(timeout=30).topics, "the topic is deleted")
    rest = ReplicatedCluster({1: trio[1]})
    other = 5 - away
    trio_without(trio, away).create(topic, [[1, other]])
    produce(rest.bootstrap, topic, 0, [b"new"], acks="all")
    trio.start(away)
    # The replica belongs to a deleted topic: it becomes a stray, and the new topic does not use it.
    eventually(lambda: any(trio[away].data.glob(f"{topic}-0.*-stray")), "the old replica is a stray")
    assert not (trio[away].data / f"{topic}-0").exists()
    reassign(trio, topic, [1, away])
    trio.await_isr(topic, 0, [1, away])
    trio.await_same(topic, 0, [1, away])
    assert values(trio.bootstrap, topic) == [b"new"]


def trio_without(cluster: ReplicatedCluster, away: int) -> ReplicatedCluster:
    return ReplicatedCluster({number: one for number, one in cluster.brokers.items() if number != away})


def reassign(cluster: ReplicatedCluster, topic: str, replicas: list[int]) -> None:
    with tempfile.TemporaryDirectory() as place:
        plan = Path(place) / "plan.json"
        plan.write_text(
            f'{{"version": 1, "partitions": [{{"topic": "{topic}", "partition": 0, "replicas": {replicas}}}]}}'
        )
        kafka_installation().tool(
            REASSIGN,
            *("--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(plan), "--execute"),
        )


@pytest.mark.parametrize("away", [2, 3])
def test_partitions_added_while_a_broker_was_away_are_replicated(trio: ReplicatedCluster, away: int) -> None:
    topic = f"more-{away}"
    trio.create(topic, [[1, away]])
    trio.kill(away)
    trio.await_isr(topic, 0, [1])
    admin = AdminClient({"bootstrap.servers": trio[1].bootstrap})
    wanted = NewPartitions(topic, 2, replica_assignment=[[1, away]])
    try:
        admin.create_partitions([wanted])[topic].result(PATIENCE_S)
        eventually(lambda: trio_without(trio, away).state(topic, 1)[0] == 1, "the new partition has a leader")
        produce(trio[1].bootstrap, topic, 1, [b"a", b"b"])
    finally:
        trio.start(away)
    trio.await_isr(topic, 1, [1, away])
    trio.await_same(topic, 1, [1, away])


@pytest.mark.parametrize(("leader", "follower"), [(1, 3), (3, 1), (1, 2)])
def test_deleted_records_are_deleted_at_all_replicas(trio: ReplicatedCluster, leader: int, follower: int) -> None:
    """The response has the low watermark: the smallest log start of all replicas."""
    topic = f"deleted-{leader}-{follower}"
    trio.create(topic, [[leader, follower]])
    produce(trio.bootstrap, topic, 0, [b"%d" % one for one in range(20)], acks="all", **{"batch.num.messages": 1})
    admin = AdminClient({"bootstrap.servers": trio.bootstrap})
    place = TopicPartition(topic, 0, 7)
    reported = admin.delete_records([place], request_timeout=30)[place].result(PATIENCE_S)
    assert reported.low_watermark == 7
    trio.kill(leader)
    trio.await_leader(topic, 0, [follower])
    assert watermarks(trio[follower].bootstrap, topic, 0)[0] == 7
    assert values(trio[follower].bootstrap, topic, 7) == [b"%d" % one for one in range(7, 20)]
    trio.start(leader)
    trio.await_isr(topic, 0, [leader, follower])


@pytest.mark.parametrize(("leader", "follower"), [(1, 3), (3, 1)])
def test_retention_moves_the_log_start_of_all_replicas(trio: ReplicatedCluster, leader: int, follower: int) -> None:
    topic = f"kept-{leader}"
    trio.create(topic, [[leader, follower]], segment_bytes="1048576", retention_bytes="1048576")
    produce(trio.bootstrap, topic, 0, [os.urandom(100_000) for _ in range(60)], acks="all")
    for one in (leader, follower):
        place = trio[one].data / f"{topic}-0"
        eventually(lambda place=place: not (place / f"{0:020}.log").exists(), f"the first segment is gone at {one}")
    eventually(
        lambda: (
            sorted(one.name for one in (trio[leader].data / f"{topic}-0").glob("*.log"))
            == sorted(one.name for one in (trio[follower].data / f"{topic}-0").glob("*.log"))
        ),
        "the same segments",
    )


def test_a_partition_is_reassigned_while_its_leader_is_killed(trio: ReplicatedCluster) -> None:
    topic = "moved"
    trio.create(topic, [[1, 2]], min_insync_replicas="1")
    with SteadyLoad(trio.bootstrap, topic, ONCE, pause_s=0.02) as load:
        load.await_more(100)
        reassign(trio, topic, [3, 2])
        trio.kill(1)
        trio.await_leader(topic, 0, [2, 3])
        load.await_more()
        trio.start(1)
        trio.await_isr(topic, 0, [2, 3])
        # The replica is deleted if the move ended before the kill, and a stray if it ended while broker 1 was away.
        eventually(lambda: not (trio[1].data / f"{topic}-0").exists(), "1 has no replica")
        reassign(trio, topic, [1, 3])
        trio.await_isr(topic, 0, [1, 3])
        load.await_more()
    check_kept(trio, topic, load.acknowledged)
    trio.await_same(topic, 0, [1, 3])


def test_no_acknowledged_record_is_lost_when_controller_and_leader_are_killed_together(
    kafka: KafkaInstallation, tmp_path: Path
) -> None:
    settings = {**BROKERS, "replica.lag.time.max.ms": "10000"}
    quick = {"broker.session.timeout.ms": "3000"}
    with (
        KafkaControllers(kafka, tmp_path, count=3, properties=quick) as controllers,
        brokers_below(controllers, tmp_path, settings, ours=[1, 2, 3]) as cluster,
    ):
        cluster.create("both", [[1, 2, 3]], min_insync_replicas="2")
        with SteadyLoad(cluster.bootstrap, "both", IDEMPOTENT) as load:
            for _ in range(2):
                load.await_more()
                leader = cluster.state("both", 0)[0]
                active = active_controller(cluster)
                controllers.node(active).crash()
                cluster.kill(leader)
                cluster.await_leader("both", 0, [one for one in (1, 2, 3) if one != leader])
                load.await_more()
                controllers.node(active).start()
                cluster.start(leader)
                cluster.await_isr("both", 0, [1, 2, 3])
        check_nothing_lost(cluster, "both", load)
        cluster.await_same("both", 0, [1, 2, 3])


def active_controller(cluster: ReplicatedCluster) -> int:
    quorum = DescribeQuorumRequest(
        topics=[
            DescribeQuorumRequest.TopicData(
                topic_name="__cluster_metadata", partitions=[DescribeQuorumRequest.PartitionData(partition_index=0)]
            )
        ]
    )
    with RawClient(cluster[1].bootstrap) as client:
        return int(client.ask(quorum, 0).topics[0].partitions[0].leader_id)


# Eligible leader replicas (KIP-966)

TOPICS = "org.apache.kafka.tools.TopicCommand"


def described(cluster: ReplicatedCluster, topic: str) -> dict[str, str]:
    """Return the kafka-topics output about a topic's first partition."""
    reported = kafka_installation().tool(
        TOPICS, *("--bootstrap-server", cluster.bootstrap, "--describe", "--topic", topic)
    )
    line = next(one for one in reported.splitlines() if "Partition: 0" in one)
    return {name.strip(): text.strip() for name, _, text in (one.partition(":") for one in line.split("\t"))}


@pytest.mark.parametrize(("last", "eligible", "other"), [(3, 1, 2), (1, 3, 2), (2, 1, 3)])
def test_an_eligible_replica_leads_after_a_clean_stop(
    trio: ReplicatedCluster, last: int, eligible: int, other: int
) -> None:
    """Replicas that stopped when the ISR was already below min.insync.replicas have all committed records."""
    topic = f"eligible-{last}-{eligible}"
    trio.create(topic, [[last, eligible, other]], min_insync_replicas="2")
    produce(trio.bootstrap, topic, 0, [b"%d" % one for one in range(10)], acks="all")
    trio[other].stop()
    trio.await_isr(topic, 0, sorted([last, eligible]))
    trio[eligible].stop()
    trio.await_isr(topic, 0, [last])
    rest = ReplicatedCluster({last: trio[last]})
    assert described(rest, topic)["Elr"] == str(eligible)
    produce(rest.bootstrap, topic, 0, [b"not committed"], **ONE_ACK)
    assert watermarks(rest.bootstrap, topic, 0) == (0, 10)
    trio.kill(last)
    trio.start(eligible)
    now = ReplicatedCluster({eligible: trio[eligible]})
    now.await_leader(topic, 0, [eligible])
    reported = described(now, topic)
    assert (reported["Elr"], reported["LastKnownElr"]) == (str(last), "")
    trio.start(other)
    trio.await_isr(topic, 0, sorted([eligible, other]))
    produce(now.bootstrap, topic, 0, [b"new"], acks="all")
    trio.start(last)
    trio.await_isr(topic, 0, [1, 2, 3])
    trio.await_same(topic, 0, [1, 2, 3])
    assert values(trio.bootstrap, topic) == [*(b"%d" % one for one in range(10)), b"new"]


@pytest.mark.parametrize(("last", "killed", "other"), [(3, 1, 2), (1, 2, 3)])
def test_a_killed_replica_is_no_longer_eligible(trio: ReplicatedCluster, last: int, killed: int, other: int) -> None:
    """A killed replica may have lost records, so it is not elected. The last known leader leads again after its
    restart."""
    topic = f"killed-{last}-{killed}"
    trio.create(topic, [[last, killed, other]], min_insync_replicas="2")
    produce(trio.bootstrap, topic, 0, [b"%d" % one for one in range(10)], acks="all")
    trio.kill(other)
    trio.await_isr(topic, 0, sorted([last, killed]))
    trio.kill(killed)
    trio.await_isr(topic, 0, [last])
    rest = ReplicatedCluster({last: trio[last]})
    assert described(rest, topic)["Elr"] == str(killed)
    trio.kill(last)
    trio.start(killed)
    now = ReplicatedCluster({killed: trio[killed]})
    eventually(
        lambda: described(now, topic)["LastKnownElr"] != "" or described(now, topic)["Elr"] == str(last), "known"
    )
    assert now.state(topic, 0)[0] == -1
    trio.start(last)
    now.await_leader(topic, 0, [last])
    trio.start(other)
    trio.await_isr(topic, 0, [1, 2, 3])
    trio.await_same(topic, 0, [1, 2, 3])
    assert values(trio.bootstrap, topic) == [b"%d" % one for one in range(10)]
