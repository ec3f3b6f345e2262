"""Node: the parts of a broker around the Fetch path, small and in memory, with a clock that the test moves.

    node = Node()
    orders = node.lead("orders")                       # a partition led here, with one replica
    node.append(orders, b"a", b"b")                    # as a producer would; waiting operations are woken
    asked = node.fetch([want(orders, 0)])              # a Fetch request; asked.response, or None while it waits
    node.pass_ms(500)                                  # deadlines

Time does not advance unless the test moves it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

from tailrace.fetch.fetch import Fetch
from tailrace.fetch.fetch_plan import FetchAuthorizer
from tailrace.fetch.fetches import Fetches
from tailrace.fetch.preferred_replica import ReplicaSelector
from tailrace.fetch.read import PartitionReader, ReplicationQuota
from tailrace.fetch.sessions import FetchSessions
from tailrace.log.partition_log import AppendResult
from tailrace.log.recovery.recovery import open_log
from tailrace.log.segments.position import FileSlice
from tailrace.metadata.image.image import EMPTY_IMAGE, MetadataImage, TopicImage
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.metadata.image.registrations import BrokerRegistration, Endpoint
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.ids import TopicPartition
from tailrace.model.steps import run_steps
from tailrace.protocol.flat.fetch import FetchAsk, ask_of, message_of
from tailrace.protocol.messages import FetchRequest, FetchResponse
from tailrace.records.checks.validation import Origin
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.partition import Partition
from tailrace.replication.replica_settings import ReplicaSettings
from tailrace.waiting.purgatory import Purgatory
from tests.support.batches import batch, end_marker
from tests.support.memory_files import MemoryFiles

NOW_MS = 1_700_000_000_000
LATEST_VERSION = 18


def topic_id_of(topic: str) -> bytes:
    return hashlib.md5(topic.encode()).digest()


def registration(
    leader: int = 1,
    replicas: Sequence[int] = (1,),
    isr: Sequence[int] | None = None,
    *,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
    adding: Sequence[int] = (),
) -> PartitionRegistration:
    return PartitionRegistration(
        replicas=tuple(replicas),
        directories=(bytes(16),) * len(replicas),
        isr=tuple(replicas if isr is None else isr),
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        adding_replicas=tuple(adding),
    )


def broker(broker_id: int, *, rack: str | None = None, epoch: int | None = None, fenced: bool = False) -> Any:
    return BrokerRegistration(
        id=broker_id,
        epoch=100 + broker_id if epoch is None else epoch,
        incarnation_id=bytes(16),
        endpoints={"PLAINTEXT": Endpoint("PLAINTEXT", f"host{broker_id}", 9000 + broker_id)},
        rack=rack,
        fenced=fenced,
    )


class Want(NamedTuple):
    """The part of a request about one partition."""

    key: TopicPartition
    offset: int
    max_bytes: int = 1_048_576
    epoch: int = -1
    last_epoch: int = -1
    log_start: int = -1
    topic_id: bytes | None = None


def want(partition: Partition | TopicPartition, offset: int, **fields: Any) -> Want:
    return Want(partition.key if isinstance(partition, Partition) else partition, offset, **fields)


def request_for(
    wants: Iterable[Want],
    *,
    version: int = LATEST_VERSION,
    session: int = 0,
    epoch: int = -1,
    forget: Iterable[TopicPartition] = (),
    replica: int = -1,
    replica_epoch: int = -1,
    **fields: Any,
) -> FetchRequest:
    request = FetchRequest(session_id=session, session_epoch=epoch, **{"min_bytes": 1, **fields})
    if version >= 15:
        request.replica_state = FetchRequest.ReplicaState(replica_id=replica, replica_epoch=replica_epoch)
    else:
        request.replica_id = replica
    topic = None
    for one in wants:
        identity = (one.key.topic, one.topic_id or topic_id_of(one.key.topic))
        if topic is None or (topic.topic, topic.topic_id) != identity:
            topic = FetchRequest.FetchTopic(topic=identity[0], topic_id=identity[1], partitions=[])
            request.topics.append(topic)
        topic.partitions.append(
            FetchRequest.FetchPartition(
                partition=one.key.partition,
                current_leader_epoch=one.epoch,
                fetch_offset=one.offset,
                last_fetched_epoch=one.last_epoch,
                log_start_offset=one.log_start,
                partition_max_bytes=one.max_bytes,
            )
        )
    for key in forget:
        request.forgotten_topics_data.append(
            FetchRequest.ForgottenTopic(topic=key.topic, topic_id=topic_id_of(key.topic), partitions=[key.partition])
        )
    return request


def ask_for(wants: Iterable[Want], *, version: int = LATEST_VERSION, **fields: Any) -> FetchAsk:
    """Return a request as the Fetch path takes it."""
    return ask_of(request_for(wants, version=version, **fields), version)


def sent_and_read(request: FetchRequest, version: int) -> FetchRequest:
    """Return the request as it arrives, without fields that its version lacks."""
    parts: list[bytes] = []
    if version < 12:
        for topic in request.topics:
            for asked in topic.partitions:
                asked.last_fetched_epoch = -1
    request.write(parts, version)
    return FetchRequest.decode(b"".join(parts), version)


def response_of(fetch: Fetch, now_ms: int) -> FetchResponse:
    """Return the response of a fetch that is ready, converted for old versions."""
    answer = run_steps(fetch.make_answer(now_ms), now_ms)
    if fetch.params.needs_conversion:
        converted = iter([convert() for convert in fetch.conversions(answer)])
        topics = [(name, one, [next(converted) for _ in partitions]) for name, one, partitions in answer.topics]
        answer = answer._replace(topics=topics)
    return message_of(answer)


class Asked:
    """A request in flight and its responses."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.fetch: Fetch | None = None
        self.ready: list[Fetch] = []
        self.responses: list[FetchResponse] = []

    def take(self, fetch: Fetch, now_ms: int) -> None:
        self.ready.append(fetch)
        response = response_of(fetch, now_ms)
        self.response_bytes(response)  # a response that cannot be encoded is a bug
        self.responses.append(response)

    @property
    def is_waiting(self) -> bool:
        return not self.responses

    @property
    def response(self) -> FetchResponse:
        assert len(self.responses) == 1, f"answered {len(self.responses)} times"
        return self.responses[0]

    def response_bytes(self, response: FetchResponse) -> bytes:
        parts: list[Any] = []
        response.write(parts, self.version)
        return b"".join(part.read() if isinstance(part, FileSlice) else bytes(part) for part in parts)

    @property
    def partitions(self) -> dict[tuple[str, int], FetchResponse.PartitionData]:
        """Return the partitions of the response in order, keyed by the broker's name of the topic."""
        return {
            (topic.topic, one.partition_index): one for topic in self.response.responses for one in topic.partitions
        }

    @property
    def only(self) -> FetchResponse.PartitionData:
        (answer,) = self.partitions.values()
        return answer


def bytes_of(answer: FetchResponse.PartitionData) -> bytes:
    return answer.records.read() if isinstance(answer.records, FileSlice) else bytes(answer.records or b"")


class Node:
    def __init__(
        self,
        broker_id: int = 1,
        *,
        slots: int = 1_000,
        eviction_ms: int = 120_000,
        authorizer: FetchAuthorizer | None = None,
        select_replica: ReplicaSelector | None = None,
        quota: ReplicationQuota | None = None,
        files: Any = None,
        **settings: Any,
    ) -> None:
        self.broker_id = broker_id
        self.now_ms = NOW_MS
        self.files = files or MemoryFiles()
        self.image: MetadataImage = EMPTY_IMAGE
        self.settings = ReplicaSettings(broker_id=broker_id, image=lambda: self.image, **settings)
        self.partitions = HostedPartitions(lambda: self.image)
        self.purgatory = Purgatory()
        ids = count(1)
        self.sessions = FetchSessions(self.purgatory, lambda: next(ids), slots=slots, eviction_ms=eviction_ms)
        reader = PartitionReader(self.partitions, select_replica=select_replica, quota=quota)
        self.fetches = Fetches(reader, self.sessions, self.purgatory, lambda: self.image, authorizer=authorizer)
        self.know(broker(broker_id))

    # Metadata

    def know(self, *brokers: BrokerRegistration) -> None:
        self.image = replace(self.image, brokers={**self.image.brokers, **{one.id: one for one in brokers}})

    def publish(self, key: TopicPartition, state: PartitionRegistration, topic_id: bytes | None = None) -> None:
        topic_id = topic_id or topic_id_of(key.topic)
        known = self.image.topics.get(key.topic)
        partitions = dict(known.partitions) if known is not None and known.id == topic_id else {}
        topic = TopicImage(key.topic, topic_id, {**partitions, key.partition: state})
        by_id = {one.id: one for one in self.image.topics.values() if one.name != key.topic}
        self.image = replace(
            self.image, topics={**self.image.topics, key.topic: topic}, topics_by_id={**by_id, topic_id: topic}
        )

    def unpublish(self, topic: str) -> None:
        topics = {name: one for name, one in self.image.topics.items() if name != topic}
        self.image = replace(self.image, topics=topics, topics_by_id={one.id: one for one in topics.values()})

    # Replicas

    def host(
        self,
        topic: str = "topic",
        index: int = 0,
        *,
        state: PartitionRegistration | None = None,
        config: dict[str, str] | None = None,
        topic_id: bytes | None = None,
    ) -> Partition:
        """Host a replica in the role that the metadata gives it."""
        key = TopicPartition(topic, index)
        folder = f"/data-{self.broker_id}/{key}"
        self.files.make_directory(folder)
        log = open_log(self.files, folder, parse_topic_config(config or {}), now_ms=self.now_ms, clean=True)
        partition = Partition(log, self.settings, topic_id or topic_id_of(topic))
        self.partitions.add(partition)
        self.apply(partition, state or registration(self.broker_id, (self.broker_id,)))
        return partition

    def lead(self, topic: str = "topic", index: int = 0, **settings: Any) -> Partition:
        return self.host(topic, index, **settings)

    def apply(self, partition: Partition, state: PartitionRegistration) -> None:
        """Apply new metadata of a partition: publish it, take the role, wake waiting operations."""
        self.publish(partition.key, state, partition.topic_id)
        if state.leader == self.broker_id:
            partition.make_leader(state, self.now_ms)
        else:
            partition.make_follower(state)
        self.check(partition)

    # Time and changes

    def check(self, partition: Partition | TopicPartition) -> int:
        key = partition.key if isinstance(partition, Partition) else partition
        return self.purgatory.check(key, self.now_ms)

    def pass_ms(self, ms: int) -> None:
        self.now_ms += ms
        self.purgatory.expire(self.now_ms)

    def append(self, partition: Partition, *values: bytes, acks: int = 1, **fields: Any) -> AppendResult:
        return self.append_batch(partition, batch(*values, timestamp=self.now_ms, **fields), acks=acks)

    def append_batch(
        self, partition: Partition, data: bytearray, *, acks: int = 1, origin: Origin = Origin.CLIENT
    ) -> AppendResult:
        result = partition.append_as_leader(data, required_acks=acks, now_ms=self.now_ms, origin=origin).result
        self.check(partition)
        return result

    def end_transaction(self, partition: Partition, producer_id: int, *, commit: bool) -> AppendResult:
        marker = end_marker(producer_id, commit=commit, timestamp=self.now_ms)
        return self.append_batch(partition, marker, origin=Origin.COORDINATOR)

    # Fetching

    def fetch(
        self, wants: Iterable[Want] = (), *, version: int = LATEST_VERSION, client: object = None, **fields: Any
    ) -> Asked:
        return self.send(request_for(wants, version=version, **fields), version, client=client)

    def send(
        self, request: FetchRequest, version: int, *, client: object = None, quota_bytes: int = 2**31 - 1
    ) -> Asked:
        asked = Asked(version)
        asked.fetch = self.fetches.start(
            ask_of(sent_and_read(request, version), version),
            version,
            self.now_ms,
            asked.take,
            client=client,
            quota_bytes=quota_bytes,
        )
        return asked


class Consumer:
    """A client with a fetch session, like a simple consumer. It fetches the offsets that it has not read."""

    def __init__(self, node: Node, wants: Iterable[Want], *, version: int = LATEST_VERSION, **fields: Any) -> None:
        self.node = node
        self.version = version
        self.fields = fields
        self.session = 0
        self.epoch = 0
        self.wants: dict[tuple[str, int], Want] = {(one.key.topic, one.key.partition): one for one in wants}
        self.changed: dict[tuple[str, int], Want] = dict(self.wants)

    def poll(self, *, forget: Iterable[TopicPartition] = (), **fields: Any) -> Asked:
        asked = self.node.fetch(
            list(self.changed.values()),
            version=self.version,
            session=self.session,
            epoch=self.epoch,
            forget=forget,
            **{**self.fields, **fields},
        )
        self.changed = {}
        self.epoch += 1
        if not asked.is_waiting:
            self.session = asked.response.session_id or self.session
        return asked

    def move(self, partition: Partition | TopicPartition, offset: int, **fields: Any) -> None:
        """Fetch another offset with the next poll."""
        one = want(partition, offset, **fields)
        self.wants[one.key.topic, one.key.partition] = one
        self.changed[one.key.topic, one.key.partition] = one

    def __iter__(self) -> Iterator[Want]:
        return iter(self.wants.values())
