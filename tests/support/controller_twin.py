"""The same requests to Apache Kafka and to our controller, and their responses in one form.

`LocalNode` is our controller with everything that a broker adds: a formatted directory, ids that count up, a clock that
does not advance. `raw_request` sends one of our messages to a running Kafka. `plain` makes a response comparable: no
throttle times, names for topic ids, the presence instead of the text of messages, lists in a fixed order.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.config.dynamic_config import check_dynamic_config
from tailrace.log.disk.files import Files
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.metadata.image.image import MetadataImage
from tailrace.metadata.image.loader import Change
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.metadata.storage.storage_format import prepare_directories
from tailrace.model.errors import KafkaError
from tailrace.model.ids import TopicId
from tailrace.protocol import messages
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.message import Message
from tailrace.protocol.registry import response_class
from tests.support.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000


def counted_ids(start: int = 1000) -> Callable[[], bytes]:
    numbers = count(start)
    return lambda: (next(numbers) << 64 | 0xABC).to_bytes(16, "big")


class LocalNode:
    """One Tailrace node: its config, its metadata log and its controller."""

    def __init__(
        self,
        files: Files | None = None,
        path: str = "/data",
        settings: Mapping[str, str] | None = None,
        *,
        config: BrokerConfig | None = None,
        port: int = 9092,
        new_id: Callable[[], bytes] | None = None,
        now_ms: int = NOW_MS,
        previous_epoch: int = -1,
    ) -> None:
        self.files = files or MemoryFiles()
        self.config = config or BrokerConfig.of(log_dirs=[path], port=port, settings=settings)
        self.now_ms = now_ms
        new_id = new_id or counted_ids()
        endpoints = self.config.controller_endpoints()
        self.identities = prepare_directories(
            self.files,
            self.config.log_dirs,
            node_id=self.config.node_id,
            cluster_id=None,
            controller_endpoints=endpoints,
            new_id=new_id,
            now_ms=now_ms,
        )
        self.log = MetadataLog(
            self.files,
            self.config.metadata_log_dir,
            self.identities[0],
            self.config.metadata_log,
            controller_endpoints=endpoints,
            now_ms=now_ms,
        )
        self.loaded = self.log.image
        self.changes: list[Change] = []
        self.controller = LocalController(
            self.log,
            self.config.static,
            new_id=new_id,
            next_int=lambda _: 0,
            check_broker_config=check_dynamic_config,
            listener=lambda change, now_ms: self.changes.append(change),
        )
        self.controller.begin(now_ms)
        self.broker_epoch = self.controller.start_broker(
            self.config.endpoints(),
            directories=[TopicId.parse(one.directory_id).value.bytes for one in self.identities],
            rack=self.config.rack,
            previous_epoch=previous_epoch,
            now_ms=now_ms,
        )

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def ask(self, request: Message, version: int) -> Message:
        """Return the response to a request, as a handler makes it."""
        controller: Any = self.controller
        method = getattr(controller, _METHODS[request.SCHEMA.name])
        arguments: list[Any] = [request]
        if request.SCHEMA.name in ("UpdateFeaturesRequest", "DescribeQuorumRequest"):
            arguments.append(version)
        if request.SCHEMA.name not in ("DescribeClientQuotasRequest", "ListPartitionReassignmentsRequest"):
            arguments.append(self.now_ms)
        key = request.SCHEMA.api_key
        assert key is not None
        try:
            response: Any = method(*arguments)
        except KafkaError as error:
            response = response_class(key)()
            response.error_code, response.error_message = error.code, str(error)
            if isinstance(response, messages.DescribeClientQuotasResponse):
                response.entries = None
        return response_class(key).decode(response.encode(version), version)

    def stop(self) -> int:
        """Stop cleanly, and return the epoch that the next start needs."""
        epoch = self.controller.stop_broker(self.now_ms)
        self.controller.close(self.now_ms)
        return epoch


_METHODS = {
    "CreateTopicsRequest": "create_topics",
    "DeleteTopicsRequest": "delete_topics",
    "CreatePartitionsRequest": "create_partitions",
    "AlterConfigsRequest": "alter_configs",
    "IncrementalAlterConfigsRequest": "incremental_alter_configs",
    "AlterClientQuotasRequest": "alter_client_quotas",
    "DescribeClientQuotasRequest": "describe_client_quotas",
    "UpdateFeaturesRequest": "update_features",
    "ElectLeadersRequest": "elect_leaders",
    "AlterPartitionReassignmentsRequest": "alter_partition_reassignments",
    "ListPartitionReassignmentsRequest": "list_partition_reassignments",
    "DescribeQuorumRequest": "describe_quorum",
}


def raw_request(port: int, request: Message, version: int) -> Message:
    """Send a request to a broker on the loopback interface, and return the response."""
    key = request.SCHEMA.api_key
    assert key is not None
    data = write_request_header(RequestHeader(key, version, 1, "twin")) + request.encode(version)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(struct.pack(">i", len(data)) + data)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        frame = _receive(connection, size)
    _, position = read_response_header(key, version, frame)
    return response_class(key).decode(frame, version, position)


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError("the broker closed the connection")
        data += part
    return bytes(data)


def plain(response: Message, version: int, names: Mapping[str, str]) -> Any:
    """Return a response without the values in which two brokers may differ. `names`: topic names by the text of their
    id.
    """
    return _plain(to_dict(response, version), names)


def _plain(value: Any, names: Mapping[str, str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {k: _plain(v, names, k) for k, v in value.items() if k not in ("throttleTimeMs", "timeoutMs")}
    if isinstance(value, list):
        parts = [_plain(one, names) for one in value]
        return sorted(parts, key=repr) if all(isinstance(one, dict) for one in parts) else parts
    if key == "errorMessage":
        return None if value is None else "said" if value else ""
    if key == "topicId":
        return names.get(value, "known to nobody" if value.strip("A") else None)
    return value
