"""The short way of a follower's Fetch: the same answers, and the same watermarks, as the general way.

Two brokers lead the same partitions and get the same requests; one of them has its short way taken away.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.broker.quick.quick_replica_fetch import QuickReplicaFetch, read_replica_fetch
from tailrace.broker.request_context import ConnectionContext
from tailrace.log.recovery.scan_kernels import whole_batches
from tailrace.metadata.controller.local_controller import LocalController
from tailrace.model.ids import TopicPartition
from tailrace.protocol.headers import read_response_header
from tailrace.protocol.messages import CreateTopicsRequest, FetchRequest, FetchResponse, ProduceRequest
from tailrace.records.batch import split_batches
from tailrace.records.builder import BatchBuilder
from tests.property.test_quick_requests import frame, told
from tests.simulation.node import broker as registered
from tests.simulation.node import registration
from tests.unit.broker.support import NOW_MS, start, with_services

VERSION = 18
FOLLOWERS = (2, 3)
PARTITIONS = 3
TOPICS = [
    CreateTopicsRequest.CreatableTopic(name="a", num_partitions=2, replication_factor=1),
    CreateTopicsRequest.CreatableTopic(name="b", num_partitions=1, replication_factor=1),
]


class _NoReplication:
    def tick(self, now_ms: int) -> None: ...
    def next_deadline_ms(self) -> None: ...


class Pair:
    def __init__(self, isr: tuple[int, ...]) -> None:
        self.now_ms = NOW_MS
        self.brokers = [with_services(start(), replication=_NoReplication()) for _ in range(2)]
        self.sessions = {one: [0, 0] for one in FOLLOWERS}  # id and epoch
        self.ends = {one: [0] * PARTITIONS for one in FOLLOWERS}  # how far each follower is
        self.told = {one: [-1] * PARTITIONS for one in FOLLOWERS}  # what its session has been asked for
        self.parked: set[int] = set()  # whose request is not answered yet
        self.isr = isr
        for broker in self.brokers:
            broker.services.fetches.sessions._new_session_id = count(1).__next__
            broker.services.local_controller.create_topics(CreateTopicsRequest(topics=TOPICS), NOW_MS)
            for request, version in ((ProduceRequest(acks=1), 9), (FetchRequest(session_epoch=-1), 12)):
                broker.handle(frame(request, version), ConnectionContext(1), NOW_MS)
            broker.take_replies()
            for partition in self.partitions(broker):
                partition.log.config = replace(partition.log.config, min_insync_replicas=2)
            self.lead(broker, 1)
        self.brokers[1].dispatcher._quick.clear()

    @staticmethod
    def partitions(broker: Any) -> list[Any]:
        return [broker.services.partitions.find(TopicPartition(*key)) for key in (("a", 0), ("a", 1), ("b", 0))]

    def lead(self, broker: Any, epoch: int) -> None:
        for partition in self.partitions(broker):
            state = registration(
                broker.services.controller.node_id,
                (broker.services.controller.node_id, *FOLLOWERS),
                (broker.services.controller.node_id, *self.isr),
                leader_epoch=epoch,
                partition_epoch=epoch,
            )
            partition.make_leader(state, self.now_ms)
            broker.services.purgatory.check(partition.key, self.now_ms)

    def both(self, act: Any) -> list[bytes | None]:
        """What both answer, which is the same."""
        found = []
        for broker in self.brokers:
            act(broker)
            found.append(
                [
                    (reply.connection_id, told(reply.parts), reply.close)
                    for reply in sorted(broker.take_replies(), key=lambda one: one.connection_id)
                ]
            )
        assert found[0] == found[1]
        self.check_same()
        return found[0]

    def check_same(self) -> None:
        states = [
            [
                (
                    one.log.high_watermark,
                    one.log.log_end_offset,
                    [
                        (p.log_end_offset, p.log_start_offset, p.last_caught_up_ms, p.last_fetch_ms, p.broker_epoch)
                        for p in one.leader.followers.values()
                    ],
                    one.traffic.replication_bytes_out,
                    len(broker.services.purgatory),
                    dict(broker.services.replies.errors_of(1)),
                )
                for one in self.partitions(broker)
            ]
            for broker in self.brokers
        ]
        assert states[0] == states[1]

    def produce(self, number: int, size: int, acks: int) -> None:
        builder = BatchBuilder()
        builder.append(self.now_ms, None, bytes(size))
        name, index = (("a", 0), ("a", 1), ("b", 0))[number]
        data = ProduceRequest.PartitionProduceData(index=index, records=builder.build())
        topic = ProduceRequest.TopicProduceData(name=name, partition_data=[data])
        request = ProduceRequest(acks=acks, timeout_ms=700, topic_data=[topic])
        context = ConnectionContext(self.now_ms)
        self.take(self.both(lambda broker: broker.handle(frame(request, 9), context, self.now_ms)))

    def fetch(self, follower: int, *, leader_epoch: int, max_bytes: int, wrong: str) -> None:
        session, epoch = self.sessions[follower]
        partitions = self.partitions(self.brokers[0])
        topics: dict[bytes, list[FetchRequest.FetchPartition]] = {}
        for number, partition in enumerate(partitions):
            offset = self.ends[follower][number]
            if epoch and self.told[follower][number] == offset:
                continue
            self.told[follower][number] = offset
            topics.setdefault(partition.topic_id, []).append(
                FetchRequest.FetchPartition(
                    partition=partition.key.partition,
                    current_leader_epoch=leader_epoch + (wrong == "epoch"),
                    fetch_offset=offset + 5 * (wrong == "offset"),
                    last_fetched_epoch=leader_epoch if offset else -1,
                    log_start_offset=0,
                    partition_max_bytes=max_bytes,
                )
            )
        request = FetchRequest(
            replica_state=FetchRequest.ReplicaState(replica_id=follower, replica_epoch=100 + follower),
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=2 * max_bytes,
            session_id=session,
            session_epoch=epoch,
            topics=[FetchRequest.FetchTopic(topic_id=one, partitions=found) for one, found in topics.items()],
        )
        data = frame(request, VERSION)
        if epoch:
            assert read_replica_fetch(data) is not None
        self.take(self.both(lambda broker: broker.handle(memoryview(data), ConnectionContext(follower), self.now_ms)))

    def take(self, replies: list[Any]) -> None:
        """Followers take what they are answered."""
        for connection_id, data, _ in replies:
            if connection_id not in FOLLOWERS:
                continue
            answer: Any = FetchResponse.decode(data, VERSION, read_response_header(1, VERSION, data)[1])
            session = self.sessions[connection_id]
            if answer.error_code:
                session[1] = 0
                continue
            session[:] = [answer.session_id, session[1] + 1]
            keys = {(one.topic_id, one.key.partition): n for n, one in enumerate(self.partitions(self.brokers[0]))}
            for topic in answer.responses:
                for one in topic.partitions:
                    number = keys[topic.topic_id, one.partition_index]
                    if one.error_code:
                        session[1] = 0
                    records = bytes(one.records or b"")
                    for batch in split_batches(records[: whole_batches(records, len(records))]):
                        self.ends[connection_id][number] = batch.next_offset
            self.parked.discard(connection_id)


steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("produce"),
            st.integers(0, PARTITIONS - 1),
            st.sampled_from([10, 10, 5_000]),
            st.sampled_from([1, -1]),
        ),
        st.tuples(st.just("fetch"), st.sampled_from(FOLLOWERS), st.sampled_from([100, 100_000]), st.just("")),
        st.tuples(
            st.just("fetch"), st.sampled_from(FOLLOWERS), st.just(100_000), st.sampled_from(["", "", "epoch", "offset"])
        ),
        st.tuples(st.just("time"), st.sampled_from([1, 100, 600])),
        st.tuples(st.just("epoch")),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(steps=steps, isr=st.sampled_from([(2, 3), (2,)]))
def test_both_ways_answer_a_follower_the_same(steps: Any, isr: tuple[int, ...]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        image = LocalController.image
        others = {one: registered(one) for one in FOLLOWERS}

        def with_others(controller: LocalController) -> Any:
            known = image.fget(controller)  # type: ignore[attr-defined]
            return replace(known, brokers={**known.brokers, **others})

        patch.setattr(LocalController, "image", property(with_others))
        play(steps, isr)


def play(steps: Any, isr: tuple[int, ...]) -> None:
    pair = Pair(isr)
    epoch = 1
    for step in steps:
        if step[0] == "produce":
            pair.now_ms += 1
            pair.produce(*step[1:])
        elif step[0] == "fetch":
            follower, max_bytes, wrong = step[1:]
            if follower not in pair.parked:  # one request at a time
                pair.parked.add(follower)
                pair.fetch(follower, leader_epoch=epoch, max_bytes=max_bytes, wrong=wrong)
        elif step[0] == "time":
            pair.now_ms += step[1]
        else:
            epoch += 1
            pair.take(pair.both(lambda broker, epoch=epoch: pair.lead(broker, epoch)))
        pair.take(pair.both(lambda broker: broker.tick(pair.now_ms)))


def test_a_follower_that_keeps_up_goes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    handle = QuickReplicaFetch.handle

    def counted(self: QuickReplicaFetch, *arguments: Any) -> bool:
        taken.append(handle(self, *arguments))
        return taken[-1]

    monkeypatch.setattr(QuickReplicaFetch, "handle", counted)
    keeps_up = [("fetch", one, 100_000, "") for one in FOLLOWERS]
    steps = [*keeps_up, ("time", 600), *keeps_up, ("produce", 0, 10, -1), *keeps_up, ("produce", 2, 10, 1), *keeps_up]
    test_both_ways_answer_a_follower_the_same.hypothesis.inner_test(steps * 2, FOLLOWERS)
    assert taken.count(True) > len(taken) // 2
