# ruff: noqa: N806 - short names for the classes of messages
"""Records: produced, fetched, looked up, deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tailrace.protocol import messages as m
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tests.support.api_cases.common import INT_MAX, LONG_MAX, Case, batch
from tests.support.api_twins import Make


def produce_cases(now_ms: int) -> Iterator[Case]:
    def send(
        *parts: tuple[str, int, bytes | None], acks: int = -1, timeout_ms: int = 5000, transaction: str | None = None
    ) -> Make:
        def make(side: Any) -> Any:
            return _ProduceByVersion(side, parts, acks, timeout_ms, transaction)

        return make

    good = batch(now_ms, b"a", b"b", b"c")
    yield "nothing", send()
    for acks in (-1, 1):
        yield f"acks {acks}", send(("orders", 0, good), ("orders", 1, good), acks=acks)
    yield "acks 0", send(("orders", 0, good), acks=0)
    yield "acks 0 to nowhere", send(("nowhere", 0, good), acks=0)
    for acks in (2, -2, 32767):
        yield f"acks {acks}", send(("orders", 0, good), acks=acks)
    yield "timeout -1", send(("orders", 0, good), timeout_ms=-1)
    yield "two topics", send(("orders", 0, good), ("timed", 0, good))
    yield "unknown topic", send(("nowhere", 0, good), ("orders", 0, good))
    yield "unknown partition", send(("orders", 99, good), ("orders", -1, good))
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
        yield f"codec {codec}", send(("orders", 2, batch(now_ms, b"a" * 100, b"b" * 100, codec=codec)))
    yield "null records", send(("orders", 0, None))
    yield "no records", send(("orders", 0, b""))
    yield "garbage", send(("orders", 0, b"\x00" * 70))
    yield "short", send(("orders", 0, good[:30]))
    yield "cut", send(("orders", 0, good[:-1]))
    yield "two batches", send(("orders", 0, good + good))
    bad_crc = bytearray(good)
    bad_crc[-1] ^= 1
    yield "bad checksum", send(("orders", 0, bytes(bad_crc)))
    yield "compacted", send(("compacted", 0, good))
    builder = BatchBuilder()
    builder.append(now_ms, None, b"v")
    yield "compacted without key", send(("compacted", 0, builder.build()))
    yield "too large", send(("small", 0, batch(now_ms, b"x" * 5000)))
    yield "old time", send(("orders", 1, batch(0, b"old")))
    yield "future time", send(("orders", 1, batch(now_ms + 10**10, b"new")))
    yield "append time", send(("timed", 0, good))
    producer = {"producer_id": 4000, "producer_epoch": 0}
    yield "first of a producer", send(("sequenced", 0, batch(now_ms, b"a", **producer, base_sequence=0)))
    yield "gap of a producer", send(("sequenced", 0, batch(now_ms, b"a", **producer, base_sequence=9)))
    old_epoch = {"producer_id": 4001, "producer_epoch": 5}
    yield "epoch 5", send(("sequenced", 0, batch(now_ms, b"a", **old_epoch, base_sequence=0)))
    old_epoch["producer_epoch"] = 4
    yield "epoch 4", send(("sequenced", 0, batch(now_ms, b"a", **old_epoch, base_sequence=1)))
    old_epoch["producer_epoch"] = 6
    yield "epoch 6 from 1", send(("sequenced", 0, batch(now_ms, b"a", **old_epoch, base_sequence=1)))
    yield (
        "unknown producer from 5",
        send(("sequenced", 0, batch(now_ms, b"a", producer_id=4002, producer_epoch=0, base_sequence=5))),
    )


class _ProduceByVersion:
    """A Produce request that names topics as its version does."""

    SCHEMA = m.ProduceRequest.SCHEMA

    def __init__(self, side: Any, parts: Any, acks: int, timeout_ms: int, transaction: str | None) -> None:
        self._side, self._parts = side, parts
        self._more = {"acks": acks, "timeout_ms": timeout_ms, "transactional_id": transaction}

    def encode(self, version: int) -> bytes:
        topics: dict[str, Any] = {}
        for name, number, records in self._parts:
            if name not in topics:
                topics[name] = m.ProduceRequest.TopicProduceData()
                if version >= 13:
                    topics[name].topic_id = self._side.topic_id(name)
                else:
                    topics[name].name = name
            topics[name].partition_data.append(m.ProduceRequest.PartitionProduceData(index=number, records=records))
        return m.ProduceRequest(topic_data=list(topics.values()), **self._more).encode(version)


class FetchByVersion:
    """A Fetch request that names topics, and the replica, as its version does."""

    SCHEMA = m.FetchRequest.SCHEMA

    def __init__(self, side: Any, parts: Any, forgotten: Any, more: dict[str, Any]) -> None:
        self._side, self._parts, self._forgotten, self._more = side, parts, forgotten, more

    def encode(self, version: int) -> bytes:
        topics: dict[str, Any] = {}
        for name, fields in self._parts:
            if name not in topics:
                topics[name] = m.FetchRequest.FetchTopic()
                self._name(topics[name], name, version)
            topics[name].partitions.append(m.FetchRequest.FetchPartition(**{"partition_max_bytes": 10**6, **fields}))
        request = m.FetchRequest(topics=list(topics.values()), **{"max_wait_ms": 0, "min_bytes": 1, **self._more})
        for name, numbers in self._forgotten:
            gone = m.FetchRequest.ForgottenTopic(partitions=list(numbers))
            self._name(gone, name, version)
            request.forgotten_topics_data.append(gone)
        return request.encode(version)

    def _name(self, topic: Any, name: str, version: int) -> None:
        if version >= 13:
            topic.topic_id = self._side.topic_id(name)
        else:
            topic.topic = name


def fetch_cases() -> Iterator[Case]:
    def ask(*parts: tuple[str, dict[str, Any]], forgotten: Any = (), **more: Any) -> Make:
        return lambda side: FetchByVersion(side, parts, forgotten, more)

    def at(topic: str, partition: int = 0, offset: int = 0, **more: Any) -> tuple[str, dict[str, Any]]:
        return topic, {"partition": partition, "fetch_offset": offset, **more}

    yield "nothing", ask()
    yield "one", ask(at("orders"))
    yield "several", ask(at("orders"), at("orders", 1), at("orders", 2), at("compacted"), at("empty"))
    for offset in (1, 2, 10**6, LONG_MAX, -1, -(2**63)):
        yield f"offset {offset}", ask(at("orders", 0, offset))
    yield "unknown topic", ask(at("nowhere"), at("orders"))
    yield "unknown partition", ask(at("orders", 99), at("orders", -1), at("orders"))
    yield "twice", ask(at("orders"), at("orders", 0, 1))
    for budget in (0, 1, 100, -1, INT_MAX):
        yield f"max bytes {budget}", ask(at("orders"), at("orders", 1), max_bytes=budget)
        yield (
            f"partition max bytes {budget}",
            ask(at("orders", 0, partition_max_bytes=budget), at("orders", 1, partition_max_bytes=budget)),
        )
    for least in (0, -1, 50):
        yield f"min bytes {least}", ask(at("orders"), min_bytes=least)
    yield "wait", ask(at("empty"), max_wait_ms=50)
    yield "wait -1", ask(at("empty"), max_wait_ms=-1)
    for epoch in (-1, 0, 1, 99, -2):
        yield f"leader epoch {epoch}", ask(at("orders", 0, 0, current_leader_epoch=epoch))
        yield f"last fetched epoch {epoch}", ask(at("orders", 0, 1, last_fetched_epoch=epoch))
    for isolation in (0, 1, 2, -1):
        yield f"isolation {isolation}", ask(at("orders"), isolation_level=isolation)
    yield "rack", ask(at("orders"), rack_id="somewhere")
    yield "log start", ask(at("orders", 0, 0, log_start_offset=5))
    for session, epoch in ((0, 0), (0, 1), (5, 0), (5, 1), (5, -1), (0, -5), (-1, 3)):
        yield f"session {session} epoch {epoch}", ask(at("orders"), session_id=session, session_epoch=epoch)
    yield "forgotten without a session", ask(at("orders"), forgotten=[("orders", [0])])


def offset_cases(now_ms: int) -> Iterator[Case]:
    L = m.ListOffsetsRequest

    def ask(*parts: tuple[str, int, int, int], **more: Any) -> Make:
        topics: dict[str, Any] = {}
        for name, number, timestamp, epoch in parts:
            topics.setdefault(name, L.ListOffsetsTopic(name=name)).partitions.append(
                L.ListOffsetsPartition(partition_index=number, timestamp=timestamp, current_leader_epoch=epoch)
            )
        return lambda side: L(**{"replica_id": -1, "topics": list(topics.values()), **more})

    yield "nothing", ask()
    for timestamp in (-1, -2, -3, -4, -5, -6, -7, -(2**63), 0, 1, now_ms, now_ms + 1, now_ms + 2, now_ms + 3, LONG_MAX):
        what = f"now{timestamp - now_ms:+}" if abs(timestamp - now_ms) < 100 else str(timestamp)
        yield (
            f"time {what}",
            ask(("orders", 0, timestamp, -1), ("orders", 1, timestamp, -1), ("empty", 0, timestamp, -1)),
        )
    for epoch in (0, 1, 99, -2):
        yield f"epoch {epoch}", ask(("orders", 0, -1, epoch))
    for replica in (-2, 1, 5, -3):
        yield f"replica {replica}", ask(("orders", 0, -1, -1), ("orders", 0 + 1, -2, -1), replica_id=replica)
    for isolation in (1, 2, -1):
        yield f"isolation {isolation}", ask(("orders", 0, -1, -1), isolation_level=isolation)
    yield "unknown", ask(("nowhere", 0, -1, -1), ("orders", 99, -1, -1), ("orders", -1, -1, -1))
    yield "twice", ask(("orders", 0, -1, -1), ("orders", 0, -2, -1))
    yield "timeout", ask(("orders", 0, -1, -1), timeout_ms=0)

    E = m.OffsetForLeaderEpochRequest

    def epoch_end(*parts: tuple[str, int, int, int], replica: int = -1) -> Make:
        topics: dict[str, Any] = {}
        for name, number, epoch, current in parts:
            topics.setdefault(name, E.OffsetForLeaderTopic(topic=name)).partitions.append(
                E.OffsetForLeaderPartition(partition=number, leader_epoch=epoch, current_leader_epoch=current)
            )
        # The default of the field is not the value that a consumer sends.
        return lambda side: E(topics=list(topics.values()), replica_id=replica)

    yield "nothing", epoch_end(replica=-2)
    for epoch in (0, 1, -1, 99, INT_MAX, -(2**31)):
        yield f"end of {epoch}", epoch_end(("orders", 0, epoch, -1), ("empty", 0, epoch, -1))
        yield f"end of {epoch} for a debugger", epoch_end(("orders", 0, epoch, -1), replica=-2)
    for current in (0, 1, 99, -2):
        yield f"current {current}", epoch_end(("orders", 0, 0, current))
        yield f"current {current} for a debugger", epoch_end(("orders", 0, 0, current), replica=-2)
    yield "unknown", epoch_end(("nowhere", 0, 0, -1), ("orders", 99, 0, -1), ("orders", -1, 0, -1), replica=-2)
    yield "twice", epoch_end(("orders", 0, 0, -1), ("orders", 0, 0, -1), replica=-2)

    R = m.DeleteRecordsRequest

    def delete(*parts: tuple[str, int, int], timeout_ms: int = 5000) -> Make:
        topics: dict[str, Any] = {}
        for name, number, offset in parts:
            topics.setdefault(name, R.DeleteRecordsTopic(name=name)).partitions.append(
                R.DeleteRecordsPartition(partition_index=number, offset=offset)
            )
        return lambda side: R(topics=list(topics.values()), timeout_ms=timeout_ms)

    yield "nothing", delete()
    yield "up to 1", delete(("orders", 0, 1))
    yield "up to 1 again, back to 0", delete(("orders", 0, 1), ("orders", 1, 0))
    yield "past the end", delete(("orders", 0, 10**6), ("orders", 1, LONG_MAX))
    yield "negative", delete(("orders", 0, -2))
    yield "unknown", delete(("nowhere", 0, 0), ("orders", 99, 0), ("orders", -1, 0))
    yield "compacted", delete(("compacted", 0, 1))
    yield "all of it", delete(("timed", 0, -1))
    yield "twice", delete(("orders", 2, 1), ("orders", 2, 2))
    yield "timeout -1", delete(("orders", 0, 2), timeout_ms=-1)
    yield "time after deletion", ask(("orders", 0, -2, -1), ("timed", 0, -2, -1), ("timed", 0 + 1, -1, -1))

    P = m.DescribeProducersRequest

    def producers(*parts: tuple[str, list[int]]) -> Make:
        return lambda side: P(topics=[P.TopicRequest(name=name, partition_indexes=some) for name, some in parts])

    yield "nothing", producers()
    yield "some", producers(("sequenced", [0]), ("orders", [0, 1]))
    yield "unknown", producers(("nowhere", [0]), ("orders", [99, -1]), ("a b", [0]))
    yield "twice", producers(("sequenced", [0, 0]))


def producer_id_cases() -> Iterator[Case]:
    def init(transaction: str | None = None, timeout_ms: int = 60_000, **more: Any) -> Make:
        return lambda side: m.InitProducerIdRequest(
            transactional_id=transaction, transaction_timeout_ms=timeout_ms, **more
        )

    yield "idempotent", init()
    yield "timeout 0", init(timeout_ms=0)
    yield "timeout -1", init(timeout_ms=-1)
    yield "empty transaction", init("")
    yield "epoch without id", init(producer_id=-1, producer_epoch=3)
    yield "id without epoch", init(producer_id=3, producer_epoch=-1)
    yield "id and epoch", init(producer_id=3, producer_epoch=3)

    def find(**more: Any) -> Make:
        return lambda side: m.FindCoordinatorRequest(**more)

    for kind in (3, -1, 99):
        yield f"type {kind}", find(key="g", key_type=kind)
        yield f"type {kind} of several", find(coordinator_keys=["a", "b"], key_type=kind)
