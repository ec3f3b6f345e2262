"""The same requests of brokers and administrators to two controllers: a running Apache Kafka, and ours in memory.

    side.ask(request, version)     the response
    side.new_records()             the records that the controller has written since the last call, in one form

Values in which two controllers may differ have names: topic ids have the topic's name, ids of ACLs are their content,
and broker epochs are removed.
Records of one request are sorted, because Kafka walks over hash tables, and each counts once: the index of ISRs in
Kafka's controller may list a partition twice. So epochs of partitions are kept for each side.
"""

from __future__ import annotations

import json
import time
from typing import Any, Protocol

from tailrace.metadata.image.partition_registration import NO_LEADER_CHANGE
from tailrace.metadata.storage.record_framing import records_in
from tailrace.model.errors import ErrorCode
from tailrace.protocol import messages as m
from tailrace.protocol.json_form import to_dict
from tailrace.protocol.message import Message
from tailrace.records.batch import split_batches
from tests.support.controller_listener import PlayedController, metadata_fetch
from tests.support.controller_twin import raw_request

_FETCH_VERSION = 17


class Side(Protocol):
    epochs: dict[int, int]  # of registered brokers

    def ask(self, request: Any, version: int) -> Any: ...

    def new_records(self) -> list[str]: ...

    def topic_id(self, name: str) -> bytes: ...

    def partition_epochs(self, name: str, number: int) -> tuple[int, int]: ...


class _Log:
    """The metadata log of a controller, read like an observer reads it."""

    def __init__(self, ask: Any) -> None:
        self._ask = ask
        self._offset, self._last_epoch, self._epoch = 0, 0, 0
        self.names: dict[str, str] = {}  # of topics, by the text of their id
        self.ids: dict[str, bytes] = {}
        self._acls: dict[str, Any] = {}  # by the text of their id
        self._partition_epochs: dict[tuple[bytes, int], tuple[int, int]] = {}  # (leader epoch, partition epoch)

    def read(self) -> list[Message]:
        """Return the records since the last call."""
        found: list[Message] = []
        attempts = 100
        while True:
            answer = self._ask(metadata_fetch(self._offset, self._last_epoch, self._epoch), _FETCH_VERSION)
            partition = answer.responses[0].partitions[0]
            if partition.current_leader.leader_epoch > self._epoch:
                self._epoch = partition.current_leader.leader_epoch
                continue
            if partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and attempts:
                attempts -= 1  # the controller has just started
                time.sleep(0.1)
                continue
            assert not partition.error_code, partition
            assert partition.snapshot_id.epoch < 0, "the log was cleaned"
            if not partition.records:
                return found
            for batch in split_batches(bytes(partition.records)):
                self._offset, self._last_epoch = batch.last_offset + 1, batch.leader_epoch
                if not batch.is_control:
                    found += records_in(batch)

    def plain(self, records: list[Message]) -> list[str]:
        return sorted(set(self.in_order(records)))

    def in_order(self, records: list[Message]) -> list[str]:
        for one in records:
            if isinstance(one, m.TopicRecord):
                shown = to_dict(one, 0)
                self.names[shown["topicId"]] = one.name
                self.ids[one.name] = one.topic_id
            elif isinstance(one, m.PartitionRecord):
                self._partition_epochs[one.topic_id, one.partition_id] = one.leader_epoch, one.partition_epoch
            elif isinstance(one, m.PartitionChangeRecord):
                leader_epoch, partition_epoch = self._partition_epochs[one.topic_id, one.partition_id]
                leader_epoch += one.leader != NO_LEADER_CHANGE
                self._partition_epochs[one.topic_id, one.partition_id] = leader_epoch, partition_epoch + 1
        kept = [one for one in records if not isinstance(one, m.NoOpRecord | m.RegisterControllerRecord)]
        return [json.dumps([one.SCHEMA.name, self._without_ids(one)], sort_keys=True) for one in kept]

    def partition_epochs(self, name: str, number: int) -> tuple[int, int]:
        return self._partition_epochs.get((self.ids.get(name, b""), number), (0, 0))

    def all_partition_epochs(self) -> dict[tuple[bytes, int], tuple[int, int]]:
        return dict(self._partition_epochs)

    def _without_ids(self, record: Message) -> Any:
        shown = to_dict(record, record.SCHEMA.versions.high)
        for key in ("brokerEpoch", "epoch"):
            shown.pop(key, None)
        if isinstance(record, m.AccessControlEntryRecord):
            self._acls[shown.pop("id")] = shown
        if isinstance(record, m.RemoveAccessControlEntryRecord):
            return self._acls.pop(shown["id"])
        if "topicId" in shown:
            shown["topicId"] = self.names.get(shown["topicId"], "unknown")
        return shown


class KafkaSide:
    def __init__(self, port: int) -> None:
        self._port = port
        self._log = _Log(self.ask)
        self.epochs: dict[int, int] = {}

    def ask(self, request: Any, version: int) -> Any:
        if not isinstance(request, m.FetchRequest):
            return raw_request(self._port, request, version)
        try:
            return raw_request(self._port, request, version)
        except ConnectionError:  # on a busy machine; to read again changes nothing
            return raw_request(self._port, request, version)

    def new_records(self) -> list[str]:
        return self._log.plain(self._log.read())

    def new_records_in_order(self) -> list[str]:
        return self._log.in_order(self._log.read())

    def all_partition_epochs(self) -> dict[tuple[bytes, int], tuple[int, int]]:
        """Return (leader epoch, partition epoch) by topic id and partition."""
        return self._log.all_partition_epochs()

    def topic_id(self, name: str) -> bytes:
        return self._log.ids.get(name, bytes(15) + b"\x09")

    def partition_epochs(self, name: str, number: int) -> tuple[int, int]:
        """Return the leader epoch and the partition epoch."""
        return self._log.partition_epochs(name, number)


class OurSide:
    def __init__(self, controller: PlayedController) -> None:
        self.controller = controller
        self._log = _Log(self.ask)
        self.epochs: dict[int, int] = {}

    def ask(self, request: Any, version: int) -> Any:
        return self.controller.ask(request, version)

    def new_records(self) -> list[str]:
        return self._log.plain(self._log.read())

    def new_records_in_order(self) -> list[str]:
        return self._log.in_order(self._log.read())

    def all_partition_epochs(self) -> dict[tuple[bytes, int], tuple[int, int]]:
        """Return (leader epoch, partition epoch) by topic id and partition."""
        return self._log.all_partition_epochs()

    def topic_id(self, name: str) -> bytes:
        return self._log.ids.get(name, bytes(15) + b"\x09")

    def partition_epochs(self, name: str, number: int) -> tuple[int, int]:
        """Return the leader epoch and the partition epoch."""
        return self._log.partition_epochs(name, number)
