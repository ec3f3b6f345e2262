"""ApiTwins: the same request to Apache Kafka and to Tailrace, and both responses in a comparable form.

    twins.compare("unknown topic", lambda side: MetadataRequest(...), is_known) → unexpected differences

Values that must differ are mapped: topic ids become names; cluster ids, ports and directories become words. The text of
an error message may differ, but not whether there is one. Lists of structs are compared in sorted order, except where
the order is part of the response. A connection that is closed without a response counts as a response.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

from tailrace.broker.broker import Broker
from tailrace.broker.requests.api_table import API_TABLE
from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.log.segments.position import FileSlice
from tailrace.protocol.api_keys import api
from tailrace.protocol.errors import ProtocolError, UnwritableMessage
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.json_form import base64_uuid_text, to_dict
from tailrace.protocol.messages import ApiVersionsRequest, MetadataRequest, ProduceRequest
from tailrace.protocol.registry import response_class

_NO_ID = base64_uuid_text(bytes(16))
CLOSED = {"closed": True}
SILENT = {"silent": True}
_ORDERED = "DescribeTopicPartitions"
# Kafka's broker learns a change a little later than Tailrace does
_LAGGING = ("Describe", "List", "Metadata", "ApiVersions")
_TRIES = 30
_MESSAGES = frozenset({"errorMessage", "batchIndexErrorMessage"})
_TIMES = frozenset({"lastFetchTimestamp", "lastCaughtUpTimestamp", "logAppendTimeMs", "totalBytes", "usableBytes"})
_OF_THE_LOG = frozenset({"leaderEpoch", "highWatermark", "logEndOffset"})
_IDS = frozenset({"topicId", "replicaDirectoryId"})


Make = Callable[[Any], Any]


class Difference(NamedTuple):
    case: str
    api: str
    version: int
    path: str
    kafka: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.api} v{self.version} {self.case}: {self.path}: Kafka {self.kafka!r}, we {self.ours!r}"


class _Common:
    def __init__(self) -> None:
        self.topic_ids: dict[str, bytes] = {}
        self.words: dict[str, str] = {}

    def topic_id(self, name: str) -> bytes:
        return self.topic_ids.get(name, b"\x07" * 16)

    def send(self, api_key: int, version: int, body: bytes) -> bytes | None:
        raise NotImplementedError

    def ask(self, request: Any, version: int) -> Any:
        key = request.SCHEMA.api_key
        answer = self.send(key, version, request.encode(version))
        if answer is None or not answer:
            return answer
        return response_class(key).decode(answer, version, read_response_header(key, version, answer)[1])

    def learn(self) -> None:
        """Note the ids of topics, and other values that must differ."""
        answer = self.ask(MetadataRequest(topics=None), 12)
        self.topic_ids = {topic.name: topic.topic_id for topic in answer.topics}
        self.words[answer.cluster_id] = "(cluster)"


class KafkaSide(_Common):
    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port
        self._connection: socket.socket | None = None
        answer = self.ask(ApiVersionsRequest(client_software_name="twin", client_software_version="1"), 3)
        self.versions = {one.api_key: range(one.min_version, one.max_version + 1) for one in answer.api_keys}
        self.versions[0] = range(3, 14)  # listed from 0 for the sake of an old client, but not served

    def send(self, api_key: int, version: int, body: bytes) -> bytes | None:
        """Return the response, None if the connection was closed, or empty bytes if no response is due."""
        header = write_request_header(RequestHeader(api_key, version, 1, "twin"))
        if self._connection is None:
            self._connection = self._connect()
        try:
            self._connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
            if api_key == 0 and _asks_for_no_response(body, version):
                return self._after_acks_0()
            (size,) = struct.unpack(">i", self._receive(4))
            return self._receive(size)
        except ConnectionError:
            self.close()
            return None

    def _connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), timeout=30)

    def _after_acks_0(self) -> bytes | None:
        """Check if the connection still responds."""
        header = write_request_header(RequestHeader(18, 0, 2, "twin"))
        assert self._connection is not None
        self._connection.sendall(struct.pack(">i", len(header)) + header)
        (size,) = struct.unpack(">i", self._receive(4))
        assert self._receive(size)[:4] == struct.pack(">i", 2)
        return b""

    def _receive(self, size: int) -> bytes:
        assert self._connection is not None
        data = bytearray()
        while len(data) < size:
            part = self._connection.recv(size - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return bytes(data)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class OurSide(_Common):
    """Tailrace without a socket; a delayed response is obtained by moving the clock."""

    _ids = count(1)

    def __init__(self, broker: Broker, **who: str) -> None:
        """`who`: the fields of the client's context."""
        super().__init__()
        self._broker = broker
        self._who = who
        self._context = self._new_context()
        self._ahead_ms = 0

    def _new_context(self) -> ConnectionContext:
        return ConnectionContext(next(self._ids), **self._who)  # type: ignore[arg-type]

    def _now(self) -> int:
        return int(time.time() * 1000) + self._ahead_ms

    def send(self, api_key: int, version: int, body: bytes) -> bytes | None:
        header = write_request_header(RequestHeader(api_key, version, 1, "twin"))
        self._broker.handle(memoryview(bytearray(header + body)), self._context, self._now())
        replies = self._broker.take_replies()
        while not replies:
            deadline = self._broker.next_deadline_ms()
            assert deadline is not None, "the request does not wait, but has no response"
            self._ahead_ms += max(deadline - self._now(), 0) + 1
            self._broker.tick(self._now())
            replies = self._broker.take_replies()
        (reply,) = replies
        if reply.close:
            self._context = self._new_context()
        if reply.parts is None:
            return None if reply.close else b""
        return b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in reply.parts)


def _asks_for_no_response(body: bytes, version: int) -> bool:
    """Return True for a Produce request with acks=0."""
    try:
        return ProduceRequest.decode(body, version).acks == 0
    except ProtocolError:
        return False


class ApiTwins:
    def __init__(self, kafka: KafkaSide, ours: OurSide) -> None:
        self.kafka = kafka
        self.ours = ours
        self.compared = 0
        self.patience = _TRIES  # number of repeated requests for lagging responses, in total

    def versions(self, api_key: int) -> list[int]:
        """Return the versions that both serve."""
        row = API_TABLE[api_key]
        return [one for one in self.kafka.versions[api_key] if row.min_version <= one <= row.max_version]

    def learn(self) -> None:
        """Wait until Kafka's broker knows created and deleted topics, and store their ids."""
        self.ours.learn()
        for _ in range(_TRIES):
            self.kafka.learn()
            if self.kafka.topic_ids.keys() == self.ours.topic_ids.keys():
                return
            time.sleep(0.1)
        raise AssertionError(f"Kafka has {sorted(self.kafka.topic_ids)}, we have {sorted(self.ours.topic_ids)}")

    def compare(
        self, case: str, make: Make, is_known: Callable[[Difference], bool], versions: Sequence[int] | None = None
    ) -> list[Difference]:
        """Send the request of `make` to each side, in all versions or in the given ones. Return unexpected
        differences.
        """
        found: list[Difference] = []
        sample = make(self.kafka)
        name = sample.SCHEMA.name.removesuffix("Request")
        sent = 0
        for version in self.versions(sample.SCHEMA.api_key) if versions is None else versions:
            while True:
                try:
                    different = self._compare_once(case, make, name, version)
                except UnwritableMessage:
                    break
                new = [one for one in different if not is_known(one)]
                sent += 1
                if not new or not name.startswith(_LAGGING) or self.patience <= 0:
                    found += new
                    break
                self.patience -= 1
                time.sleep(0.1)
        self.compared += sent
        return found

    def _compare_once(self, case: str, make: Make, name: str, version: int) -> list[Difference]:
        bodies = [(side, make(side).encode(version)) for side in (self.kafka, self.ours)]
        key = make(self.kafka).SCHEMA.api_key
        kafka, ours = (self._reported(side, key, version, body) for side, body in bodies)
        return [Difference(case, name, version, *one) for one in _differences("", kafka, ours)]

    def _reported(self, side: _Common, api_key: int, version: int, body: bytes) -> Any:
        answer = side.send(api_key, version, body)
        if answer is None:
            return CLOSED
        if not answer:
            return SILENT
        message = response_class(api_key).decode(answer, version, read_response_header(api_key, version, answer)[1])
        names = {base64_uuid_text(topic_id): f"(id of {name})" for name, topic_id in side.topic_ids.items()}
        return Mapping({**side.words, **names}, api(api_key).name).plain(to_dict(message, version, with_records=True))


class Mapping:
    """Replaces values that must differ by words."""

    def __init__(self, words: dict[str, str], api_name: str) -> None:
        self._words = words
        self._api = api_name

    def plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._field(name, one) for name, one in value.items()}
        if isinstance(value, list):
            reported = [self.plain(one) for one in value]
            is_sorted = self._api == _ORDERED or not reported or not isinstance(reported[0], dict)
            return reported if is_sorted else sorted(reported, key=json.dumps)
        return self._words.get(value, value) if isinstance(value, str) else value

    def _field(self, name: str, value: Any) -> Any:
        if name in _MESSAGES:
            return "(text)" if value else None
        if name in _TIMES:
            return "(some)" if value not in (-1, 0) else value
        if name in _IDS and value not in self._words:
            return value if value == _NO_ID else "(an id)"
        if name == "port":
            return "(port)" if value != -1 else -1
        if name == "sessionId":
            return "(session)" if value else 0
        if name == "finalizedFeaturesEpoch" or (self._api == "DescribeQuorum" and name in _OF_THE_LOG):
            return "(some)" if value >= 0 else value
        if name == "producerId" and self._api == "InitProducerId":
            return "(an id)" if value >= 0 else value
        if name == "apiKeys":
            # Tailrace serves fewer APIs, and older versions of most.
            return {one["apiKey"]: one["maxVersion"] for one in value if one["apiKey"] in API_TABLE}
        return self.plain(value)


def _differences(path: str, kafka: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for name in {**kafka, **ours}:
            yield from _differences(f"{path}.{name}", kafka.get(name, "(none)"), ours.get(name, "(none)"))
    elif isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        for number, (one, other) in enumerate(zip(kafka, ours, strict=True)):
            yield from _differences(f"{path}[{number}]", one, other)
    elif kafka != ours:
        yield path, kafka, ours
