"""A broker that stopped cleanly is accepted again at once, whatever the controllers' session timeout is."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.confluent import consume, produce
from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.kafka_member import KafkaMember
from tests.support.kraft_broker import kraft_broker
from tests.support.replicated_cluster import PATIENCE_S, ReplicatedCluster, eventually
from tests.support.tailrace_process import TailraceProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

# A broker that has to wait for the end of a session does not come back within a test.
LONG = {"broker.session.timeout.ms": "600000"}


def was_refused(broker: TailraceProcess) -> bool:
    return "DUPLICATE_BROKER_REGISTRATION" in broker.errors


def test_a_broker_comes_back_before_its_previous_session_expires(kafka: KafkaInstallation, tmp_path: Path) -> None:
    with (
        KafkaControllers(kafka, tmp_path, properties=LONG, is_formatted_here=True) as controllers,
        kraft_broker(controllers, tmp_path / "one", 1) as one,
        kraft_broker(controllers, tmp_path / "two", 2) as two,
    ):
        cluster = ReplicatedCluster({1: one, 2: two})
        cluster.create("both", [[1, 2]])
        cluster.create("alone", [[1]])
        sequenced = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
        for turn in range(3):
            for topic in ("both", "alone"):
                sequenced.produce(topic, b"%d" % turn, partition=0)
            assert sequenced.flush(PATIENCE_S) == 0
            assert one.stop() == 0
            assert ReplicatedCluster({2: two}).await_leader("both", 0, [2]) == 2
            one.start()
            cluster.await_isr("both", 0, [1, 2])
            assert cluster.await_leader("alone", 0, [1]) == 1
        assert not was_refused(one)
        for topic in ("both", "alone"):
            assert [record.value for record in consume(one.bootstrap, topic, 0)] == [b"0", b"1", b"2"]
        settings = one.options
        one.stop()
        one.options = (*settings, "-o", "broker.rack=elsewhere")  # the registration may differ
        one.start()
        admin = AdminClient({"bootstrap.servers": two.bootstrap})
        eventually(
            lambda: (
                {node.id: node.rack for node in admin.describe_cluster().result(PATIENCE_S).nodes}.get(1) == "elsewhere"
            ),
            "the new rack",
        )
        assert not was_refused(one)


def test_tailrace_registers_again_after_kafka_was_the_same_node(kafka: KafkaInstallation, tmp_path: Path) -> None:
    """The last incarnation is then that of Kafka, so our broker must not amend its own earlier registration."""
    with KafkaControllers(
        kafka, tmp_path, properties={"broker.session.timeout.ms": "3000"}, is_formatted_here=True
    ) as controllers:
        ours = kraft_broker(controllers, tmp_path / "data", 1)
        with ours:
            admin = AdminClient({"bootstrap.servers": ours.bootstrap})
            admin.create_topics([NewTopic("t", 1)])["t"].result(PATIENCE_S)
            produce(ours.bootstrap, "t", 0, [b"ours"])
            assert ours.stop() == 0
        theirs = KafkaMember(controllers, tmp_path / "kafka", 1, {"log.dirs": str(tmp_path / "data")}, port=ours.port)
        with theirs:
            cluster = AdminClient({"bootstrap.servers": theirs.bootstrap})

            def leads() -> bool:
                known = cluster.list_topics("t", timeout=10).topics["t"].partitions
                return 0 in known and known[0].leader == 1

            eventually(leads, "Kafka leads")
            produce(theirs.bootstrap, "t", 0, [b"theirs"])
            theirs.stop()
        with ours:
            assert [record.value for record in consume(ours.bootstrap, "t", 0)] == [b"ours", b"theirs"]
            produce(ours.bootstrap, "t", 0, [b"ours again"])
            assert ours.stop() == 0
            ours.start()
            assert [record.value for record in consume(ours.bootstrap, "t", 0)] == [b"ours", b"theirs", b"ours again"]
