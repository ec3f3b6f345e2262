"""Errors of `consume`, with a fake cluster without sockets. Other tests use real clusters."""

from __future__ import annotations

import json

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.api_keys import ApiKey
from tailrace.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from tailrace.records.batch import CRC_POSITION, RecordBatch
from tests.support.batches import batch
from tests.support.command import Ran, tailrace
from tests.unit.client.fakes import SILENCE, FakeCluster

HERE = TopicPartition("t", 0)


class Reading:
    """A fake cluster with one partition of ten batches with one record each. A fetch returns one batch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fake = FakeCluster()
        self.fake.add_topic("t", 1)
        self.fake.handle(ApiKey.LIST_OFFSETS, self.list_offsets)
        self.fake.handle(ApiKey.FETCH, self.fetch)
        self.start, self.end = 0, 10
        self.batches: list[RecordBatch] = []
        for offset in range(10):
            one = RecordBatch(memoryview(batch(b"v%d" % offset)))
            one.set_offset_and_epoch(offset, 0)
            self.batches.append(one)
        self.deleted_at: dict[int, int] = {}  # fetch offset → log start offset from then on
        monkeypatch.setattr(
            "tailrace.cli.connection.connecting.ClusterClient", lambda bootstrap, settings: self.fake.client()
        )

    def list_offsets(self, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        (asked,) = request.topics[0].partitions
        offset = self.start if asked.timestamp == -2 else self.end
        found = ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=0, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=[found])])

    def fetch(self, request: FetchRequest, version: int) -> FetchResponse:
        (asked,) = request.topics[0].partitions
        self.start = self.deleted_at.get(asked.fetch_offset, self.start)
        found = FetchResponse.PartitionData(partition_index=0, high_watermark=self.end, last_stable_offset=self.end)
        if asked.fetch_offset < self.start:
            found.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            found.records = b"".join(bytes(one.view) for one in self.batches[asked.fetch_offset :][:1])
        topic_id = self.fake.topics["t"].topic_id
        topics = [FetchResponse.FetchableTopicResponse(topic_id=topic_id, partitions=[found])]
        return FetchResponse(responses=topics)


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    return Reading(monkeypatch)


def values(ran: Ran) -> list[str]:
    return [one["value"] for one in ran.json_lines]


@pytest.mark.parametrize(
    "how", [[], ["--follow", "--from", "beginning", "--max", "7"]], ids=["to the end", "following"]
)
def test_records_deleted_during_the_read_are_skipped_with_a_warning(reading: Reading, how: list[str]) -> None:
    reading.deleted_at = {2: 5}
    ran = tailrace("consume", "t", "--json", *how)
    assert ran.status == 0
    assert values(ran) == ["v0", "v1", "v5", "v6", "v7", "v8", "v9"]
    assert json.loads(ran.err) == {"warning": {"message": "t-0: offsets 2 to 4 were deleted during the read"}}


def test_consume_stops_at_a_damaged_batch_after_printing_earlier_ones(reading: Reading) -> None:
    reading.batches[3].view[CRC_POSITION] ^= 1
    ran = tailrace("consume", "t", "--json")
    assert (ran.status, values(ran)) == (2, ["v0", "v1", "v2"])
    assert "damaged batch of t-0: checksum" in ran.err


def test_consume_stops_at_a_batch_that_cannot_be_decoded(reading: Reading) -> None:
    one = reading.batches[3]
    one.view[60] = 9  # a wrong record count of nine, with a correct checksum
    crc = RecordBatch(one.view).computed_crc()
    one.view[CRC_POSITION : CRC_POSITION + 4] = crc.to_bytes(4, "big")
    ran = tailrace("consume", "t", "--json")
    assert (ran.status, values(ran)) == (1, ["v0", "v1", "v2"])
    assert json.loads(ran.err)["error"]["message"].startswith("t-0: RecordBatch(offsets 3..3, 9 records")


def test_consume_from_a_silent_broker_ends_at_the_timeout(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    reading.fake.handle(ApiKey.FETCH, lambda request, version: SILENCE)
    monkeypatch.setattr(
        "tailrace.cli.connection.connecting.ClusterClient",
        lambda bootstrap, settings: reading.fake.client(
            total_timeout_ms=settings.total_timeout_ms, request_timeout_ms=settings.request_timeout_ms
        ),
    )
    began = reading.fake.clock.now
    ran = tailrace("consume", "t", "--timeout", "5")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("tailrace: kafka:9001 did not answer Fetch within")
    assert reading.fake.clock.now - began < 6
