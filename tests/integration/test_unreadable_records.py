"""A client cannot make the broker write a record that it cannot read again, and such a record affects no
other client.
"""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path
from typing import Any

from tailrace.model.errors import ErrorCode
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.messages import (
    FindCoordinatorRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    OffsetFetchRequest,
)
from tailrace.records.batch import RecordBatch
from tailrace.records.builder import BatchBuilder
from tests.support.raw_client import RawClient
from tests.support.tailrace_process import TailraceProcess

ONE_PARTITION = (
    *("-o", "transaction.state.log.num.partitions=1"),
    *("-o", "offsets.topic.num.partitions=1"),
    *("-o", "group.initial.rebalance.delay.ms=0"),
)
INVALID_UTF8 = b"\xff" * 12_000  # 36,000 bytes once each byte has become a replacement character
INIT_VERSION = 1
JOIN_VERSION = 5


def find_coordinators(client: RawClient) -> None:
    for key_type in (0, 1):
        found = client.ask(FindCoordinatorRequest(key="any", key_type=key_type), 3)
        assert found.error_code == ErrorCode.NONE


def init(client: RawClient, transactional_id: str) -> Any:
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
    return client.ask(request, INIT_VERSION)


def init_raw(client: RawClient, transactional_id: bytes) -> Any:
    """Send InitProducerId with an id of any bytes."""
    header = write_request_header(RequestHeader(InitProducerIdRequest.SCHEMA.api_key or 0, INIT_VERSION, 1, "raw"))
    body = struct.pack(">h", len(transactional_id)) + transactional_id + struct.pack(">i", 60_000)
    client.socket.sendall(struct.pack(">i", len(header + body)) + header + body)
    return client.receive(InitProducerIdRequest.SCHEMA.api_key or 0, INIT_VERSION)


def join(client: RawClient, group: str, instance: str | None = None) -> Any:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0")
    request = JoinGroupRequest(
        group_id=group,
        group_instance_id=instance,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    return client.ask(request, JOIN_VERSION)


def test_ids_too_long_for_a_record_are_refused_and_other_clients_are_served(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "data", *ONE_PARTITION) as broker:
        with RawClient(broker.bootstrap) as client:
            find_coordinators(client)
            first = init(client, "honest")
            assert init(client, "x" * 32_767).error_code == ErrorCode.NONE, "as long as a string can be"
            static = join(client, "g", "instance")
            assert static.error_code == ErrorCode.NONE
        with RawClient(broker.bootstrap) as client:
            answer = None
            with contextlib.suppress(ConnectionError):  # a reader may refuse such a string and close the connection
                answer = init_raw(client, INVALID_UTF8)
            assert answer is None or answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR, "not acknowledged"
        for client_id, instance in (("c" * 32_767, None), ("c", "i" * 32_767)):
            with RawClient(broker.bootstrap, client_id=client_id) as client:
                assert join(client, "h", instance).error_code == ErrorCode.UNKNOWN_SERVER_ERROR, "as Kafka answers"
        with RawClient(broker.bootstrap) as client:
            assert init(client, "honest").producer_epoch == first.producer_epoch + 1
        broker.kill()
        broker.start()
        with RawClient(broker.bootstrap) as client:
            find_coordinators(client)
            again = init(client, "honest")
            assert (again.error_code, again.producer_id) == (ErrorCode.NONE, first.producer_id)
            assert again.producer_epoch == first.producer_epoch + 2
            assert init(client, "x" * 32_767).producer_epoch == 1
            groups = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
            assert client.ask(OffsetFetchRequest(groups=[groups]), 8).groups[0].error_code == ErrorCode.NONE
        assert "Traceback" not in broker.errors


def append_by_hand(folder: Path, key: bytes, value: bytes) -> None:
    """Append a record to the only segment of a partition that no broker serves."""
    (segment,) = folder.glob("*.log")
    data = segment.read_bytes()
    position = end = epoch = 0
    while position < len(data):
        batch = RecordBatch(memoryview(data)[position:])
        position, end, epoch = position + batch.size, batch.last_offset + 1, batch.leader_epoch
    builder = BatchBuilder(base_offset=end, leader_epoch=epoch)
    builder.append(1, key, value)
    segment.write_bytes(data + builder.build())


def test_a_directory_with_a_record_of_a_wrong_length_serves_the_other_transactions(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with TailraceProcess(data, *ONE_PARTITION) as broker:
        with RawClient(broker.bootstrap) as client:
            find_coordinators(client)
            before = init(client, "before")
        assert broker.stop() == 0
        name = "\ufffd".encode() * 12_000
        append_by_hand(data / "__transaction_state-0", b"\0\0" + len(name).to_bytes(2, "big") + name, b"\0\1")
        append_by_hand(data / "__transaction_state-0", b"\0\0\0\5after", b"\0\1 not a transaction")
        append_by_hand(data / "__consumer_offsets-0", b"\0\2\x8c\xa0" + name, b"\0\3")
        (data / ".kafka_cleanshutdown").unlink()  # sizes have changed, so recovery has to scan
        broker.start()
        with RawClient(broker.bootstrap) as client:
            find_coordinators(client)
            again = init(client, "before")
            assert (again.error_code, again.producer_id) == (ErrorCode.NONE, before.producer_id)
            assert again.producer_epoch == before.producer_epoch + 1
            assert init(client, "after").error_code == ErrorCode.NONE, "the unreadable record is skipped"
            assert join(client, "g", "instance").error_code == ErrorCode.NONE
        skipped = [line for line in broker.errors.splitlines() if "skipped while loading" in line]
        assert len(skipped) == 2, "one line for each coordinator"
        assert "partition=__consumer_offsets-0 offset=0" in skipped[0]
        assert "partition=__transaction_state-0 offset=1" in skipped[1]
        loaded = [line for line in broker.errors.splitlines() if "coordinator loaded" in line]
        assert "records=3 skipped=2" in loaded[-1]
