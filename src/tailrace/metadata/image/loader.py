"""MetadataLoader: committed batches of the metadata log → delta → image.

    loader = MetadataLoader(image)
    for batch in batches:
        loader.feed(batch)
    change = loader.take()        # the result of the batches, or None if nothing has changed yet

Records between a BeginTransactionRecord and its end are held back. EndTransactionRecord applies them together,
AbortTransactionRecord drops them. Control batches do not change the image. They describe the quorum, whose feature
level and voters are kept in `quorum`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tailrace.metadata.image.delta import MetadataDelta
from tailrace.metadata.image.image import EMPTY_IMAGE, MetadataImage
from tailrace.metadata.image.registrations import InconsistentMetadata
from tailrace.metadata.storage.record_framing import records_in
from tailrace.model.ids import LeaderEpoch, Offset
from tailrace.protocol.message import Message
from tailrace.records.batch import RecordBatch
from tailrace.records.control_records import KRaftVersion, KRaftVoters, Voter, parse_control
from tailrace.records.record import iter_records


@dataclass(slots=True)
class QuorumFacts:
    """The quorum as control records describe it. `voters_offset` is -1 if the voters are in a snapshot or nowhere."""

    kraft_version: int = 0
    voters: tuple[Voter, ...] = ()
    voters_offset: Offset = -1

    def note_version(self, kraft_version: int) -> None:
        self.kraft_version = kraft_version

    def note_voters(self, voters: tuple[Voter, ...], offset: Offset) -> None:
        self.voters, self.voters_offset = voters, offset


class Change(NamedTuple):
    delta: MetadataDelta
    image: MetadataImage


class _Position(NamedTuple):
    offset: Offset
    epoch: LeaderEpoch
    timestamp_ms: int


class MetadataLoader:
    def __init__(self, image: MetadataImage = EMPTY_IMAGE, quorum: QuorumFacts | None = None) -> None:
        self.image = image
        self.quorum = quorum or QuorumFacts()
        self._delta = MetadataDelta(image)
        self._complete = _Position(image.offset, image.epoch, image.timestamp_ms)  # the delta is complete up to here
        self._held_back: list[Message] | None = None

    @property
    def in_transaction(self) -> bool:
        return self._held_back is not None

    def feed(self, batch: RecordBatch) -> None:
        if batch.is_control:
            self._read_control(batch)
        else:
            for record in records_in(batch):
                self._replay(record)
        if self._held_back is None:
            self._complete = _Position(batch.last_offset, batch.leader_epoch, batch.max_timestamp)

    def take(self) -> Change | None:
        """Return the new image after whole batches and ended transactions, and its difference from the one before."""
        if self._complete.offset == self.image.offset:
            return None
        delta, (offset, epoch, timestamp_ms) = self._delta, self._complete
        self.image = delta.apply(offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)
        self._delta = MetadataDelta(self.image)
        return Change(delta, self.image)

    def _replay(self, record: Message) -> None:
        name = record.SCHEMA.name
        if name == "BeginTransactionRecord":
            if self._held_back is not None:
                raise InconsistentMetadata("a metadata transaction begins inside another one")
            self._held_back = []
        elif name in ("EndTransactionRecord", "AbortTransactionRecord"):
            if self._held_back is None:
                raise InconsistentMetadata(f"{name} outside a metadata transaction")
            if name == "EndTransactionRecord":
                self._delta.replay_all(self._held_back)
            self._held_back = None
        elif self._held_back is not None:
            self._held_back.append(record)
        else:
            self._delta.replay(record)

    def _read_control(self, batch: RecordBatch) -> None:
        for record in iter_records(batch):
            value = parse_control(record)
            if isinstance(value, KRaftVersion):
                self.quorum.note_version(value.kraft_version)
            elif isinstance(value, KRaftVoters):
                self.quorum.note_voters(value.voters, record.offset)
