"""DataRequests: Produce, Fetch, ListOffsets, DeleteRecords and OffsetForLeaderEpoch, drawn at random."""

from __future__ import annotations

from random import Random
from typing import Any, Final, NamedTuple

from tailrace.protocol import messages as m
from tests.support.random_requests.random_twins import Make, Side
from tests.support.random_requests.record_data import NO_PRODUCER, Recipe, RecordData, Sequenced
from tests.support.random_requests.settings import Topic

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
SESSIONS: Final = ("a", "b", "c")
IDEMPOTENT: Final = (4000, 4001)  # producer ids that no broker has given out
_BYTES: Final = (0, 1, 60, 100, 300, 1_000, 5_000, 1_048_576, INT_MAX, -1)


class Drawn(NamedTuple):
    label: str
    make: Make
    version: int


class Sent(NamedTuple):
    """A part of a Produce request that consists of one whole batch of an idempotent producer."""

    topic: str
    partition: int
    producer: str | int
    sequence: int
    count: int


class DataRequests:
    def __init__(self, dice: Random, topics: list[Topic], start_ms: int) -> None:
        self._dice = dice
        self._topics = topics
        self._records = RecordData(dice, start_ms)
        self._start_ms = start_ms
        self.session_epochs = dict.fromkeys(SESSIONS, 0)
        self.sequences: dict[tuple[str | int, str, int], int] = {}
        self.producer_epochs = dict.fromkeys(IDEMPOTENT, 0)
        self.ends: dict[tuple[str, int], int] = {}

    def topic(self, *, with_internal: bool = False) -> tuple[str, int]:
        """Return a topic and a partition, most of which exist."""
        if self._dice.random() < 0.05:
            odd = [("nowhere", 0), ("", 0), ("a b", 0)]
            return self._dice.choice([*odd, ("__consumer_offsets", 0)] if with_internal else odd)
        topic = self._dice.choice(self._topics)
        if self._dice.random() < 0.05:
            return topic.name, self._dice.choice([topic.partitions, 99, -1])
        return topic.name, self._dice.randrange(topic.partitions)

    # Produce

    def produce(self, versions: list[int], transaction: str | None = None) -> tuple[Drawn, list[Sent]]:
        """Draw a Produce request. `transaction`: the name of the transactional producer of the batches."""
        dice = self._dice
        version = dice.choice(versions)
        parts: dict[tuple[str, int], tuple[Recipe, Any]] = {}
        sent: list[Sent] = []
        for _ in range(dice.choice([1, 1, 1, 1, 2, 3, 0])):
            place = self.topic(with_internal=True)
            if place in parts:
                continue
            parts[place] = self._part(place, transaction, sent)
        acks = dice.choice([-1, -1, -1, 1, 1, 0, 2])
        fields: dict[str, Any] = {"acks": acks, "timeout_ms": dice.choice([1_000, 1_000, 0, -1])}
        transactional_id = transaction
        if dice.random() < 0.03:
            transactional_id = dice.choice([None, "", "nobody"])

        def make(side: Side) -> Any:
            topics: dict[str, Any] = {}
            for (name, number), (recipe, producer) in parts.items():
                if name not in topics:
                    topics[name] = m.ProduceRequest.TopicProduceData()
                    _name(topics[name], side, name, by_id=version >= 13)
                who = (
                    (producer, self.producer_epochs[producer]) if isinstance(producer, int) else side.producer(producer)
                )
                topics[name].partition_data.append(
                    m.ProduceRequest.PartitionProduceData(index=number, records=recipe(who))
                )
            return m.ProduceRequest(topic_data=list(topics.values()), transactional_id=transactional_id, **fields)

        label = f"Produce acks={acks} {transactional_id=} {[(*place, who) for place, (_, who) in parts.items()]}"
        return Drawn(label, make, version), sent if acks != 0 else []

    def _part(
        self, place: tuple[str, int], transaction: str | None, sent: list[Sent]
    ) -> tuple[Recipe, str | int | None]:
        dice = self._dice
        producer: str | int | None = transaction
        if transaction is None and dice.random() < 0.3:
            producer = dice.choice(IDEMPOTENT)
            if dice.random() < 0.05:
                self.producer_epochs[producer] += 1
                self._forget(producer)
        if producer is None:
            return self._records.draw()[0], None
        sequence = self.sequences.get((producer, *place), 0)
        if dice.random() < 0.12:
            sequence = max(sequence + dice.choice([-1, -2, 1, 5]), 0)
        is_transactional = (transaction is not None) != (dice.random() < 0.03)
        recipe, count = self._records.draw(Sequenced(sequence, is_transactional))
        if count:
            sent.append(Sent(*place, producer, sequence, count))
        return recipe, producer

    def _forget(self, producer: str | int) -> None:
        for key in [one for one in self.sequences if one[0] == producer]:
            del self.sequences[key]

    def new_epoch(self, producer: str) -> None:
        """Give a transactional producer a new epoch, in which it counts from 0."""
        self._forget(producer)

    def produced(self, sent: list[Sent], ours: Any, names: dict[str, str]) -> None:
        """Note the sequences of appended batches. `names`: topics by id."""
        from tailrace.protocol.json_form import base64_uuid_text

        taken = {
            (topic.name or names.get(base64_uuid_text(topic.topic_id), ""), one.index): one.error_code
            for topic in ours.responses
            for one in topic.partition_responses
        }
        for one in sent:
            if taken.get((one.topic, one.partition)) == 0:
                self.sequences[one.producer, one.topic, one.partition] = one.sequence + one.count

    # Fetch

    def fetch(self, versions: list[int]) -> tuple[Drawn, str | None, int]:
        """Return the request, the session it belongs to and its epoch."""
        dice = self._dice
        version = dice.choice(versions)
        session = dice.choice([None, *SESSIONS]) if version >= 7 else None
        epoch = -1 if session is None else self.session_epochs[session]
        if session is not None and dice.random() < 0.08:
            epoch = dice.choice([-1, 0, epoch + 1, epoch - 1, INT_MAX])
        is_full = epoch in (0, -1)
        parts = [
            (self.topic(), self._fetch_part(version))
            for _ in range(dice.choice([1, 1, 2, 4] if is_full else [0, 0, 1, 2]))
        ]
        forgotten = [] if is_full else [self.topic() for _ in range(dice.choice([0, 0, 0, 1, 2]))]
        fields = {
            "max_wait_ms": dice.choice([0, 0, 0, 1, 4, -1]),
            "min_bytes": dice.choice([0, 1, 1, 300, 100_000, -1]),
            "max_bytes": dice.choice(_BYTES),
            "isolation_level": dice.choice([0, 0, 1, 1, 1, 2]),
            "session_epoch": epoch,
            "rack_id": dice.choice(["", "rack"]) if version >= 11 else "",
        }
        has_odd_session = dice.random() < 0.02

        def make(side: Side) -> Any:
            topics: list[Any] = []
            for (name, number), given in parts:
                topic = m.FetchRequest.FetchTopic(partitions=[m.FetchRequest.FetchPartition(partition=number, **given)])
                _name(topic, side, name, by_id=version >= 13, attribute="topic")
                topics.append(topic)
            request = m.FetchRequest(topics=topics, **fields)
            if session is not None:
                request.session_id = 123_456 if has_odd_session else side.sessions.get(session, 0)
            for name, number in forgotten:
                gone = m.FetchRequest.ForgottenTopic(partitions=[number])
                _name(gone, side, name, by_id=version >= 13, attribute="topic")
                request.forgotten_topics_data.append(gone)
            return request

        return Drawn(f"Fetch {session=} {fields} {parts} {forgotten=}", make, version), session, epoch

    def _fetch_part(self, version: int) -> dict[str, int]:
        dice = self._dice
        part = {
            "fetch_offset": dice.choice([0, 0, dice.randrange(30), dice.randrange(300), -1, LONG_MAX]),
            "partition_max_bytes": dice.choice(_BYTES),
        }
        if version >= 9:
            part["current_leader_epoch"] = dice.choice([-1] * 6 + [0, 0, 1, -2])
        if version >= 12:
            part["last_fetched_epoch"] = dice.choice([-1] * 6 + [0, 1])
        return part

    def fetched(self, session: str | None, epoch: int, sides: tuple[Side, Side], answers: tuple[Any, Any]) -> None:
        """Update the session as a client does."""
        if session is None:
            return
        error = answers[1].error_code
        if error or epoch == -1 or not answers[1].session_id:
            self.session_epochs[session] = 0
            for side in sides:
                side.sessions.pop(session, None)
            return
        self.session_epochs[session] = 1 if epoch in (0, INT_MAX) else epoch + 1
        for side, answer in zip(sides, answers, strict=True):
            side.sessions[session] = answer.session_id

    # Other requests about a log

    def list_offsets(self, versions: list[int]) -> Drawn:
        dice = self._dice
        version = dice.choice(versions)
        timed = {topic.name for topic in self._topics if topic.has_append_time}
        topics: dict[str, Any] = {}
        for name, number in (self.topic() for _ in range(dice.choice([1, 2, 3]))):
            special = [-1, -2, -4, -5, -6, -7, 0, LONG_MAX] if name in timed else [-1, -2, -3, -4, -5, -6, 0, LONG_MAX]
            timestamp = dice.choice(special)
            if name not in timed and dice.random() < 0.6:
                timestamp = self._records.timestamp() + dice.choice([0, 0, 1])
            part = m.ListOffsetsRequest.ListOffsetsPartition(partition_index=number, timestamp=timestamp)
            if version >= 4:
                part.current_leader_epoch = dice.choice([-1] * 6 + [0, 1])
            topics.setdefault(name, m.ListOffsetsRequest.ListOffsetsTopic(name=name)).partitions.append(part)
        request = m.ListOffsetsRequest(
            replica_id=dice.choice([-1, -1, -1, -2, 1, 7]), topics=list(topics.values()), timeout_ms=1_000
        )
        if version >= 2:
            request.isolation_level = dice.choice([0, 1, 1, 2])
        if version < 10:
            request.timeout_ms = 0
        asked = [(one.name, [(p.partition_index, p.timestamp) for p in one.partitions]) for one in request.topics]
        label = f"ListOffsets replica={request.replica_id} isolation={request.isolation_level} {asked}"
        return Drawn(label, lambda side: request, version)

    def delete_records(self, versions: list[int]) -> Drawn:
        dice = self._dice
        name, number = self.topic(with_internal=True)
        offset = dice.choice([0, 1, dice.randrange(20), -1, -2, LONG_MAX])
        part = m.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=number, offset=offset)
        topic = m.DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=[part])
        request = m.DeleteRecordsRequest(topics=[topic], timeout_ms=1_000)
        return Drawn(f"DeleteRecords {name} {number} {offset}", lambda side: request, dice.choice(versions))

    def epoch_end(self, versions: list[int]) -> Drawn:
        dice = self._dice
        name, number = self.topic()
        part = m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
            partition=number, leader_epoch=dice.choice([0, 1, -1]), current_leader_epoch=dice.choice([-1, 0, 1])
        )
        topic = m.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=name, partitions=[part])
        request = m.OffsetForLeaderEpochRequest(topics=[topic], replica_id=dice.choice([-1, -2]))
        return Drawn(f"OffsetForLeaderEpoch {name} {number}", lambda side: request, dice.choice(versions))


def _name(topic: Any, side: Side, name: str, *, by_id: bool, attribute: str = "name") -> None:
    if by_id:
        topic.topic_id = side.topic_id(name)
    else:
        setattr(topic, attribute, name)


__all__ = ["NO_PRODUCER", "DataRequests", "Drawn", "Sent"]
