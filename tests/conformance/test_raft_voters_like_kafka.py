"""AddRaftVoter and RemoveRaftVoter: Kafka's combined node and ours respond the same, with kraft.version 0 and 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tailrace.model.ids import TopicId
from tailrace.protocol import messages as m
from tailrace.protocol.json_form import to_dict
from tests.support.controller_twin import raw_request
from tests.support.kafka_broker import KafkaBroker
from tests.support.kafka_install import KafkaInstallation
from tests.support.tailrace_process import TailraceProcess

pytestmark = pytest.mark.kafka

NEW = bytes(range(16))
NO_DIRECTORY = bytes(16)
CONTROLLER = [("CONTROLLER", "127.0.0.1", 1)]


def identity(data: Path) -> dict[str, str]:
    lines = (data / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def add(cluster_id: str | None, voter_id: int, directory_id: bytes, listeners: Any = CONTROLLER) -> Any:
    request = m.AddRaftVoterRequest
    where = [request.Listener(name=name, host=host, port=port) for name, host, port in listeners]
    return request(
        cluster_id=cluster_id,
        timeout_ms=1_000,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=where,
    )


def remove(cluster_id: str | None, voter_id: int, directory_id: bytes) -> Any:
    return m.RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory_id)


def answers(port: int, data: Path) -> list[Any]:
    known = identity(data)
    cluster, directory = known["cluster.id"], TopicId.parse(known["directory.id"]).value.bytes
    found = []
    for request, versions in (
        (add("other", 2, NEW), (0, 1)),
        (add(None, 2, NO_DIRECTORY), (0, 1)),
        (add(cluster, -1, NEW), (0, 1)),
        (add(cluster, 2, NEW, []), (0, 1)),
        (add(cluster, 2, NEW, [("OTHER", "127.0.0.1", 1)]), (0, 1)),
        (add(cluster, 1, directory), (0, 1)),
        (add(cluster, 1, NEW), (0, 1)),
        (add(cluster, 2, NEW), (0, 1)),
        (add(None, 3, NEW, CONTROLLER * 2), (0, 1)),
        (remove("other", 1, directory), (0,)),
        (remove(None, 2, NEW), (0,)),
        (remove(cluster, 1, NO_DIRECTORY), (0,)),
        (remove(cluster, -1, NEW), (0,)),
        (remove(cluster, 1, NEW), (0,)),
        (remove(cluster, 1, directory), (0,)),
    ):
        for version in versions:
            answer = to_dict(raw_request(port, request, version), version)
            answer["errorMessage"] = answer["errorMessage"] is not None
            found.append(answer)
    return found


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_voters_cannot_be_changed_at_a_single_node(
    kafka: KafkaInstallation, tmp_path: Path, kraft_version: int
) -> None:
    broker = KafkaBroker(kafka, tmp_path / "kafka")
    if not kraft_version:
        del broker.properties["controller.quorum.bootstrap.servers"]
        broker.properties["controller.quorum.voters"] = f"1@127.0.0.1:{broker.controller_port}"
        settings = tmp_path / "server.properties"
        settings.write_text("".join(f"{key}={value}\n" for key, value in broker.properties.items()))
        broker.tool("kafka.tools.StorageTool", "format", "--cluster-id=tv2hPse_QgeV9fWAXHWukA", "-c", str(settings))
    with broker:
        theirs = answers(broker.port, broker.data)
    assert {one["errorCode"] for one in theirs} >= ({35} if not kraft_version else {7, 126, 127})
    # Ours continues with Kafka's directory, and so with its kraft.version.
    options = [part for key, text in broker.properties.items() if key != "log.dirs" for part in ("-o", f"{key}={text}")]
    with TailraceProcess(broker.data, *options, port=broker.port) as ours:
        assert answers(ours.port, broker.data) == theirs
