"""The directory of a controller moves between Apache Kafka's controller and ours, while the brokers below it serve on.
`tailrace migrate` hands the metadata of our controller to a quorum of Kafka's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tailrace.log.disk.files import DiskFiles
from tailrace.log.disk.overlay_files import OverlayFiles
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.storage.migration import read_node_metadata
from tailrace.protocol.messages import AlterClientQuotasRequest
from tests.conformance.test_migration import migrate, running
from tests.conformance.test_replication import check_nothing_lost
from tests.support.both_controllers import KINDS, Controllers, controllers_of
from tests.support.confluent import produce
from tests.support.kafka_broker import free_port
from tests.support.kafka_controllers import KafkaController
from tests.support.kafka_install import KafkaInstallation
from tests.support.raw_client import RawClient
from tests.support.replicated_cluster import PATIENCE_S, ReplicatedCluster, brokers_below, eventually
from tests.support.steady_load import IDEMPOTENT, SteadyLoad
from tests.support.tailrace_controller import ControllerProcess
from tests.support.tailrace_process import TailraceProcess

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

COMMON = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
CONTROLLERS = {**COMMON, "broker.session.timeout.ms": "4000"}
BROKERS = {
    **COMMON,
    "offsets.topic.replication.factor": "2",
    "broker.heartbeat.interval.ms": "500",
    "replica.fetch.backoff.ms": "200",
}


def change_everything(cluster: ReplicatedCluster) -> None:
    """Write metadata of every kind."""
    cluster.create("orders", [[1, 2], [2, 1]], min_insync_replicas="2", retention_ms="123456789")
    cluster.create("deleted", [[1, 2]])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4_096)
    upsertion = UserScramCredentialUpsertion("alice", credential, b"secret")
    acl = AclBinding(
        *(ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL),
        *("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW),
    )
    futures: list[Any] = [
        *admin.delete_topics(["deleted"]).values(),
        *admin.alter_user_scram_credentials([upsertion]).values(),
        *admin.create_acls([acl]).values(),
    ]
    for future in futures:
        future.result(PATIENCE_S)
    kind = AlterClientQuotasRequest
    entry = kind.EntryData(
        entity=[kind.EntityData(entity_type="user", entity_name="alice")],
        ops=[kind.OpData(key="producer_byte_rate", value=7.0, remove=False)],
    )
    with RawClient(cluster[1].bootstrap) as client:
        assert client.ask(kind(entries=[entry]), 1).entries[0].error_code == 0


def kept(image: MetadataImage) -> dict[str, Any]:
    """Return the metadata that must survive a swap. Leaders, epochs and ISRs may change."""
    return {
        "topics": {name: (one.id, sorted(one.partitions)) for name, one in image.topics.items()},
        "replicas": {(topic.name, number): one.replicas for topic, number, one in image.partitions()},
        "configs": image.configs,
        "quotas": image.client_quotas,
        "credentials": image.scram_credentials,
        "acls": image.acls,
        "features": image.features,
        "brokers": set(image.brokers),
        "incarnations": {number: one.incarnation_id for number, one in image.brokers.items()},
    }


def metadata_in(directory: Path) -> MetadataImage:
    return read_node_metadata(OverlayFiles(DiskFiles()), str(directory), int(time.time() * 1000)).image


def swapped(node: KafkaController | ControllerProcess, kafka: KafkaInstallation) -> KafkaController | ControllerProcess:
    """Return the other kind of controller on the same directory and port."""
    if isinstance(node, ControllerProcess):
        options = {**CONTROLLERS, "log.dirs": str(node.data)}
        place = node.data.parent / "kafka"
        address = f"127.0.0.1:{node.port}"
        return KafkaController(kafka, place, node.node_id, node.port, address, "", (), options)
    properties = {key: text for key, text in node.properties.items() if key != "log.dirs"}
    words = [part for key, text in properties.items() for part in ("-o", f"{key}={text}")]
    return ControllerProcess(kafka, node.data, node.port, *words)


def end(node: KafkaController | ControllerProcess, *, crashes: bool) -> None:
    node.crash() if crashes else node.stop()


def check_alive(cluster: ReplicatedCluster, topic: str) -> None:
    """Check that the controller decides again: a topic is created with replicas at both brokers, and used."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    wanted = NewTopic(topic, 1, replica_assignment=[[1, 2]])

    def is_created() -> bool:
        future = admin.create_topics([wanted], operation_timeout=5, request_timeout=10)[topic]
        error = future.exception(PATIENCE_S)
        return error is None or error.args[0].name() == "TOPIC_ALREADY_EXISTS"

    eventually(is_created, f"{topic} is created")
    cluster.await_isr(topic, 0, [1, 2])
    assert produce(cluster.bootstrap, topic, 0, [b"a"], acks="all") == [0]


@pytest.mark.parametrize("crashes", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("first", KINDS)
def test_a_controllers_directory_moves_to_the_other_kind_and_back(
    kafka: KafkaInstallation, tmp_path: Path, first: str, crashes: bool
) -> None:
    with (
        controllers_of(first, kafka, tmp_path, properties=CONTROLLERS) as controllers,
        brokers_below(controllers, tmp_path, BROKERS, ours=[1], theirs=[2]) as cluster,
        ExitStack() as stack,
    ):
        change_everything(cluster)
        node = one_of(controllers)
        with SteadyLoad(cluster.bootstrap, "orders", IDEMPOTENT, pause_s=0.01) as load:
            for turn in range(2):
                load.await_more()
                end(node, crashes=crashes)
                before = kept(metadata_in(node.data))
                load.await_more()  # the brokers serve without a controller
                node = swapped(node, kafka)
                stack.callback(lambda node=node: node.crash() if node.process is not None else None)
                node.start()
                check_alive(cluster, f"after-{turn}")
                after = kept(metadata_in(node.data))
                assert after["topics"].pop(f"after-{turn}")
                assert after["replicas"].pop((f"after-{turn}", 0)) == (1, 2)
                assert after == before
        check_nothing_lost(cluster, "orders", load)
        cluster.await_same("orders", 0, [1, 2])


def one_of(controllers: Controllers) -> KafkaController | ControllerProcess:
    return controllers.nodes[0]


@contextmanager
def stopped(broker: Any) -> Iterator[None]:
    broker.stop()
    yield
    broker.start()


def test_migrated_brokers_of_our_controller_continue_below_a_quorum_of_kafkas(
    kafka: KafkaInstallation, tmp_path: Path
) -> None:
    target = tmp_path / "cluster"
    with (
        controllers_of("tailrace", kafka, tmp_path, properties=CONTROLLERS) as controllers,
        brokers_below(controllers, tmp_path, BROKERS, ours=[1], theirs=[2]) as cluster,
    ):
        change_everything(cluster)
        sent = [b"%d" % number for number in range(500)]
        assert produce(cluster.bootstrap, "orders", 0, sent, acks="all") == list(range(500))
        node = one_of(controllers)
        assert isinstance(node, ControllerProcess)
        node.stop()
        before = kept(metadata_in(node.data))
        words = [part for key, text in CONTROLLERS.items() for part in ("-o", f"{key}={text}")]
        # The first new controller has the address of the old one, so the brokers find it without new settings.
        addresses = [f"3100@127.0.0.1:{node.port}", *(f"{3101 + one}@127.0.0.1:{free_port()}" for one in range(2))]
        migrate("--data", node.data, "--to", target, *words, controllers=addresses)
        assert not (target / "broker.properties").exists()
        with pytest.raises(AssertionError, match="node 3000 cannot lead it alone"):
            TailraceProcess(node.data, *node.options, port=node.port).start()
        with running(kafka, target) as quorum:
            check_alive(cluster, "later")
            quorum[1].crash()
            check_alive(cluster, "latest")
            with stopped(cluster[1]):
                cluster.await_leader("orders", 0, [2])
            cluster.await_isr("orders", 0, [1, 2])
            quorum[2].stop()
            after = kept(metadata_in(quorum[2].data))
            for topic in ("later", "latest"):
                assert after["topics"].pop(topic)
                assert after["replicas"].pop((topic, 0)) == (1, 2)
            assert {**after, "incarnations": None} == {**before, "incarnations": None}
        cluster.await_same("orders", 0, [1, 2])
