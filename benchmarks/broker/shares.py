"""Share groups: a member fetches records and accepts those of the previous fetch, repeatedly."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import count
from typing import Any, Final
from uuid import UUID

from benchmarks.broker import frames
from benchmarks.broker.comparison import Comparison, compare, take_turns
from benchmarks.broker.contenders import Contender, cpu_s, delete_topic, make_topic
from benchmarks.broker.load import send_each
from tailrace.model.ids import TopicId
from tailrace.protocol.messages import FindCoordinatorRequest, InitializeShareGroupStateRequest, ShareFetchRequest
from tailrace.records.builder import BatchBuilder
from tests.support.raw_client import RawClient

TITLE = "Broker: share groups"
TEXT = (
    "One member of a share group asks for 500 records at a time (ShareFetch) and acknowledges with the same request "
    "what it was given before. Accepted as a whole; or every other record rejected, so that each has a state of its "
    "own. Batches of 100 records of 100 bytes, and batches of one. CPU is the broker's, per record."
)
CONTENDERS = ("Tailrace", "Apache Kafka")
RECORDS = {100: 200_000, 1: 40_000}  # by batch size
WARM_UPS = 2
MAX_RECORDS: Final = 500
ACCEPT, REJECT = 1, 3
_SHARE_GROUP: Final = 2  # coordinator type of share groups
_groups = count()


@dataclass(frozen=True)
class RecordCost:
    cpu_us: float
    records_per_s: float

    @property
    def cost(self) -> float:
        return self.cpu_us

    def __str__(self) -> str:
        return f"{self.cpu_us:.2f} µs, {self.records_per_s:,.0f}/s"


def run(contenders: list[Contender], rounds: int) -> list[Comparison]:
    able = [one for one in contenders if one.name in CONTENDERS]
    rows = []
    for size, records in RECORDS.items():
        name = f"shared-{size}"
        ids = {one.name: _filled(one, name, size, records) for one in able}
        for mixed in (False, True):

            def work(
                one: Contender, ids: dict[str, bytes] = ids, mixed: bool = mixed, records: int = records
            ) -> RecordCost:
                return _consume(one, ids[one.name], records, mixed=mixed)

            for one in able:
                if not one.is_warmed_up:
                    for _ in range(WARM_UPS):
                        work(one)
            kind = "every other rejected" if mixed else "accepted"
            rows.append(compare(f"batches of {size}, {kind}", dict(take_turns(able, rounds, work))))
        for one in able:
            delete_topic(one, name)
    return rows


def _filled(one: Contender, name: str, size: int, records: int) -> bytes:
    topic_id = make_topic(one, name)
    builder = BatchBuilder()
    now_ms = int(time.time() * 1_000)
    for number in range(size):
        builder.append(now_ms, None, bytes(100), offset=number)
    frame = frames.produce(topic_id, bytes(builder.build()))
    send_each(one.port, [frame] * (records // size), error_at=frames.PRODUCE_ERROR_AT)
    return topic_id


def _consume(one: Contender, topic_id: bytes, records: int, *, mixed: bool) -> RecordCost:
    group = f"group-{next(_groups)}"
    with RawClient(f"127.0.0.1:{one.port}", timeout_s=120) as client:
        _begin(client, group, topic_id)
        request = _request(group, topic_id)
        got = 0
        before, began = 0.0, 0.0
        while got < records:
            answer = client.ask(request, 2)
            request.share_session_epoch += 1
            acquired = [
                range_
                for topic in answer.responses
                for partition in topic.partitions
                for range_ in partition.acquired_records
            ]
            if not got:  # the group's state is loaded by now
                before, began = cpu_s(one.pid), time.monotonic()
            got += sum(range_.last_offset - range_.first_offset + 1 for range_ in acquired)
            request.topics = [_acknowledged(topic_id, acquired, mixed=mixed)] if acquired else []
        return RecordCost((cpu_s(one.pid) - before) / got * 1e6, got / (time.monotonic() - began))


def _begin(client: RawClient, group: str, topic_id: bytes) -> None:
    """Initialize the group's state like the group coordinator does for a member's first partition."""
    data = InitializeShareGroupStateRequest.PartitionData(partition=0, state_epoch=0, start_offset=0)
    topic = InitializeShareGroupStateRequest.InitializeStateData(topic_id=topic_id, partitions=[data])
    key = f"{group}:{TopicId(UUID(bytes=topic_id))}:0"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = client.ask(FindCoordinatorRequest(key_type=_SHARE_GROUP, coordinator_keys=[key]), 6)
        if not found.coordinators[0].error_code:
            answer = client.ask(InitializeShareGroupStateRequest(group_id=group, topics=[topic]), 0)
            if not answer.results[0].partitions[0].error_code:
                return
        time.sleep(0.05)
    raise RuntimeError(f"{group} has no coordinator")


def _request(group: str, topic_id: bytes) -> ShareFetchRequest:
    partition = ShareFetchRequest.FetchPartition(partition_index=0)
    return ShareFetchRequest(
        group_id=group,
        member_id="member",
        share_session_epoch=0,
        max_wait_ms=5_000,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=MAX_RECORDS,
        batch_size=MAX_RECORDS,
        topics=[ShareFetchRequest.FetchTopic(topic_id=topic_id, partitions=[partition])],
    )


def _acknowledged(topic_id: bytes, acquired: list[Any], *, mixed: bool) -> ShareFetchRequest.FetchTopic:
    batches = []
    for one in acquired:
        size = one.last_offset - one.first_offset + 1
        types = [ACCEPT if number % 2 else REJECT for number in range(size)] if mixed else [ACCEPT]
        batches.append(
            ShareFetchRequest.AcknowledgementBatch(
                first_offset=one.first_offset, last_offset=one.last_offset, acknowledge_types=types
            )
        )
    partition = ShareFetchRequest.FetchPartition(partition_index=0, acknowledgement_batches=batches)
    return ShareFetchRequest.FetchTopic(topic_id=topic_id, partitions=[partition])
