"""KafkaClient: the Java client of a running broker, inside the oracle's JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from tests.support.oracle_types import OracleRecord, TimestampOffset

IsolationLevel = Literal["read_uncommitted", "read_committed"]


class KafkaClient:
    """A client made by `LogOracle.connect(broker.bootstrap)`. Producers and consumers live for one call each."""

    def __init__(self, call: Callable[..., Any], number: int) -> None:
        self._send = call
        self.number = number

    def _call(self, op: str, **arguments: Any) -> Any:
        return self._send(f"client_{op}", client=self.number, **arguments)

    def create_topic(self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Create a topic with one replica, and return its id."""
        return str(self._call("create_topic", topic=topic, partitions=partitions, config=dict(config or {})))

    def delete_topic(self, topic: str) -> None:
        self._call("delete_topic", topic=topic)

    def alter_topic(self, topic: str, config: Mapping[str, str]) -> None:
        self._call("alter_topic", topic=topic, config=dict(config))

    def delete_records(self, topic: str, partition: int, before_offset: int) -> int:
        """Delete records, and return the new low watermark."""
        return int(self._call("delete_records", topic=topic, partition=partition, before_offset=before_offset))

    def commit(self, group: str, topic: str, partition: int, offset: int, metadata: str = "") -> None:
        """Commit an offset for a group that has no members."""
        self._call("commit", group=group, topic=topic, partition=partition, offset=offset, metadata=metadata)

    def produce(
        self,
        topic: str,
        partition: int,
        *batches: Iterable[OracleRecord],
        config: Mapping[str, str] | None = None,
    ) -> list[list[int]]:
        """Send each group of records as one batch, all from one producer, and return their offsets."""
        answer = self._call("produce", batches=_batches(topic, partition, batches), config=dict(config or {}))
        return [list(offsets) for offsets in answer]

    def transaction(
        self,
        transactional_id: str,
        topic: str,
        partition: int,
        *batches: Iterable[OracleRecord],
        end: Literal["commit", "abort", "open"],
        config: Mapping[str, str] | None = None,
    ) -> list[list[int]]:
        """Run one transaction of one producer. An open transaction stays open when the client is closed."""
        settings = {"transactional.id": transactional_id, "enable.idempotence": "true", **(config or {})}
        answer = self._call("transaction", batches=_batches(topic, partition, batches), config=settings, end=end)
        return [list(offsets) for offsets in answer]

    def consume(
        self,
        topic: str,
        partition: int,
        from_offset: int | None = None,
        isolation: IsolationLevel = "read_uncommitted",
    ) -> list[OracleRecord]:
        """Return every record up to the end: the high watermark or last stable offset, depending on isolation."""
        answer = self._call("consume", topic=topic, partition=partition, from_offset=from_offset, isolation=isolation)
        return [OracleRecord.parse(record) for record in answer]

    def offset_for_time(self, topic: str, partition: int, timestamp: int) -> TimestampOffset | None:
        answer = self._call("offset_for_time", topic=topic, partition=partition, timestamp=timestamp)
        return None if answer is None else TimestampOffset(*answer)

    def bounds(self, topic: str, partition: int, isolation: IsolationLevel = "read_uncommitted") -> tuple[int, int]:
        """Return (beginning offset, end offset)."""
        start, end = self._call("bounds", topic=topic, partition=partition, isolation=isolation)
        return start, end

    def close(self) -> None:
        self._call("close")

    def __enter__(self) -> KafkaClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _batches(topic: str, partition: int, batches: Sequence[Iterable[OracleRecord]]) -> list[dict[str, Any]]:
    return [
        {"topic": topic, "partition": partition, "records": [record.encode() for record in batch]} for batch in batches
    ]
