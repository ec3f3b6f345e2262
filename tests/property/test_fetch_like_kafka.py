"""Sessions and answers of the Fetch path, compared with Apache Kafka's field by field.

Generated sequences of requests: versions 4 to 18, sessions with changed and forgotten partitions, wrong ids and epochs,
limits, isolation, leader epochs, last fetched epochs, unknown topics and ids, replica ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.protocol.messages import FetchRequest
from tests.property.fetch_pair import FetchPair, reported, request

pytestmark = pytest.mark.kafka

NAMES = ("plain", "transactions", "squeezed", "deleted", "empty", "nowhere")
LIMITS = st.sampled_from([0, 1, 60, 100, 200, 500, 1_000, 10_000, 1_048_576, -1])


@pytest.fixture(scope="module")
def pair(kafka: Any, log_oracle: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FetchPair]:
    from tests.support.kafka_broker import KafkaBroker

    directory = tmp_path_factory.mktemp("fetch-pair")
    properties = {"log.index.size.max.bytes": "4096"}
    with KafkaBroker(kafka, directory / "kafka", properties=properties) as broker:
        made = FetchPair(broker, log_oracle, directory)
        yield made
        made.close()


class Script:
    """Draws requests for one client."""

    def __init__(self, pair: FetchPair, data: st.DataObject, version: int) -> None:
        self.pair = pair
        self.draw = data.draw
        self.version = version
        self.ids = {one.key.topic: one.topic_id for one in pair.partitions}
        self.ends = {one.key: one.log.log_end_offset for one in pair.partitions}
        self.session = 0
        self.epoch = 0

    def partition(self) -> tuple[str, FetchRequest.FetchPartition]:
        topic = self.draw(st.sampled_from(NAMES))
        number = self.draw(st.sampled_from([0, 0, 1, 2, 7]))
        end = self.ends.get((topic, number), 10)  # type: ignore[call-overload]
        asked = FetchRequest.FetchPartition(
            partition=number,
            fetch_offset=self.draw(st.integers(0, end) | st.sampled_from([end, -1, end + 1, 2**63 - 1])),
            partition_max_bytes=self.draw(LIMITS),
        )
        if self.version >= 9:
            asked.current_leader_epoch = self.draw(st.sampled_from([-1, -1, -1, 0, 1, 2, 3, 4, 9]))
        if self.version >= 12:
            asked.last_fetched_epoch = self.draw(st.sampled_from([-1, -1, -1, 0, 1, 2, 3, 9]))
        return topic, asked

    def topics(self, most: int) -> list[FetchRequest.FetchTopic]:
        topics: list[FetchRequest.FetchTopic] = []
        for topic, asked in self.draw_many(most):
            if topics and topics[-1].topic == topic:
                topics[-1].partitions.append(asked)
            else:
                topics.append(
                    FetchRequest.FetchTopic(topic=topic, topic_id=self.ids.get(topic, b"?" * 16), partitions=[asked])
                )
        return topics

    def draw_many(self, most: int) -> list[tuple[str, FetchRequest.FetchPartition]]:
        return [self.partition() for _ in range(self.draw(st.integers(0, most)))]

    def forgotten(self) -> list[FetchRequest.ForgottenTopic]:
        if self.version < 7:
            return []
        return [
            FetchRequest.ForgottenTopic(
                topic=topic,
                topic_id=self.ids.get(topic, b"?" * 16),
                partitions=self.draw(st.lists(st.integers(0, 3), max_size=3)),
            )
            for topic in self.draw(st.lists(st.sampled_from(NAMES), max_size=2))
        ]

    def next_request(self) -> FetchRequest:
        session, epoch = self.session, self.epoch
        trouble = self.draw(st.sampled_from([None] * 8 + ["epoch", "id", "close", "new"]))
        if trouble == "epoch":
            epoch += self.draw(st.sampled_from([-1, 1, 5]))
        elif trouble == "id":
            session = 1_234_567
        elif trouble == "close":
            epoch = -1
        elif trouble == "new":
            epoch = 0
        if self.version < 7:
            session, epoch = 0, -1
        full = epoch in (0, -1)
        return request(
            self.topics(5 if full else 2),
            version=self.version,
            replica=self.draw(st.sampled_from([-1] * 8 + [-2, -3, 1, 5])),
            forgotten=[] if full else self.forgotten(),
            session_id=session,
            session_epoch=epoch,
            max_bytes=self.draw(LIMITS),
            min_bytes=self.draw(st.sampled_from([0, 1, 300])),
            max_wait_ms=self.draw(st.sampled_from([0, 0, 0, 1])),
            isolation_level=self.draw(st.sampled_from([0, 0, 0, 1, 1, 1, 2])),
            rack_id=self.draw(st.sampled_from(["", "rack"])) if self.version >= 11 else "",
        )

    def went(self, sent: FetchRequest, session_id: int, error: int) -> None:
        """Update the client's session after a response."""
        if error:
            self.session, self.epoch = 0, 0
        elif sent.session_epoch == 0:
            self.session, self.epoch = session_id, 1 if session_id else 0
        elif sent.session_epoch == -1 or session_id == 0:
            self.session, self.epoch = 0, 0
        else:
            self.epoch = sent.session_epoch + 1


def converse(pair: FetchPair, data: st.DataObject, version: int, steps: int) -> None:
    script = Script(pair, data, version)
    for _ in range(steps):
        sent = script.next_request()
        ours, theirs = pair.ask(sent, version)
        assert reported(ours) == reported(theirs), sent
        script.went(sent, ours.session_id, ours.error_code)
    pair.close_sessions()


UNHURRIED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


@settings(UNHURRIED, max_examples=60)
@given(data=st.data(), version=st.integers(4, 18), steps=st.integers(1, 8))
def test_generated_fetch_sessions_get_kafkas_responses(
    pair: FetchPair, data: st.DataObject, version: int, steps: int
) -> None:
    converse(pair, data, version, steps)


@pytest.mark.slow
@settings(UNHURRIED, max_examples=2_000)
@given(data=st.data(), version=st.integers(4, 18), steps=st.integers(1, 12))
def test_many_generated_fetch_sessions_get_kafkas_responses(
    pair: FetchPair, data: st.DataObject, version: int, steps: int
) -> None:
    converse(pair, data, version, steps)


def test_a_negative_limit_counts_for_the_first_partition_of_a_session_only(pair: FetchPair) -> None:
    """The partition that has returned records is the last one of the session then."""
    asked = [
        FetchRequest.FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1_000_000)
        for number, offset in ((0, 0), (1, 13))
    ]
    session = 0
    for epoch, limit in ((0, 0), (1, 0), (2, -1)):
        topics = [] if epoch else [FetchRequest.FetchTopic(topic="plain", partitions=asked)]
        sent = request(topics, version=9, session_id=session, session_epoch=epoch, max_bytes=limit)
        ours, theirs = pair.ask(sent, 9)
        assert reported(ours) == reported(theirs)
        session = ours.session_id
    assert [one.error_code for topic in ours.responses for one in topic.partitions] == [0]
    pair.close_sessions()
