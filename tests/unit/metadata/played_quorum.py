"""PlayedQuorum: controllers that answer an observer, played by a metadata log in memory and a mailbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tailrace.log.disk.checkpoints import DirectoryIdentity
from tailrace.log.disk.files import join
from tailrace.metadata.image.registrations import Endpoint
from tailrace.metadata.quorum.observed_log import ObservedLog
from tailrace.metadata.quorum.quorum_observer import ControllerAddress, ObserverSettings, QuorumObserver
from tailrace.metadata.storage.metadata_log import MetadataLog
from tailrace.metadata.storage.metadata_log_settings import MetadataLogSettings
from tailrace.metadata.storage.storage_format import bootstrap_records, format_directory, read_identity
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicId
from tailrace.protocol import messages as m
from tailrace.protocol.message import Message
from tailrace.waiting.outbox import Failure, Outbox, OutgoingRequest
from tests.support.memory_files import MemoryFiles

CLUSTER = "c2l4dGVlbiBieXRlcyE"
DIRECTORY = str(TopicId.parse("AAAAAAAAAAAAAAAAAAAB5w"))
PORTS = (9093, 9094, 9095)
SMALL = MetadataLogSettings(internal_segment_bytes=400, retention_bytes=100)


class PlayedQuorum:
    """One log of a quorum whose members listen on PORTS; `leader` is the port of the one that leads, or None."""

    def __init__(self, settings: MetadataLogSettings | None = None) -> None:
        files = MemoryFiles()
        endpoint = Endpoint("CONTROLLER", "127.0.0.1", PORTS[0])
        identity = DirectoryIdentity(CLUSTER, 1, DIRECTORY)
        format_directory(files, "/controller", identity, controller_endpoints=(endpoint,), now_ms=1)
        self.log = MetadataLog(
            files,
            "/controller",
            read_identity(files, "/controller"),
            settings,
            controller_endpoints=(endpoint,),
            now_ms=1,
        )
        self.files = files
        self.leader: int | None = PORTS[0]
        self.high_watermark: int | None = None  # None: everything
        self.asked: list[tuple[int, str]] = []
        self.damage: Callable[[Any], None] = lambda response: None  # what happens to a response on its way
        self.log.begin_epoch(1)
        self.log.commit(bootstrap_records(files, "/controller"), 1, transaction="Bootstrap records")

    def commit(self, *records: Message) -> None:
        self.log.commit(records, 2)

    def topic(self, number: int, **changes: Any) -> None:
        topic_id = (1000 + number).to_bytes(16, "big")
        self.commit(
            m.TopicRecord(name=f"topic-{number}", topic_id=topic_id),
            m.PartitionRecord(
                partition_id=0, topic_id=topic_id, replicas=[7], isr=[7], leader=7, leader_epoch=0, partition_epoch=0
            ),
        )

    def answer(self, request: OutgoingRequest, now_ms: int) -> None:
        body = request.body
        self.asked.append((request.peer.port, body.SCHEMA.name))
        if isinstance(body, m.FetchRequest):
            response: Any = self._fetch(request.peer.port, body)
        else:
            assert isinstance(body, m.FetchSnapshotRequest)
            response = self._snapshot(body)
        self.damage(response)
        request.answered(response, now_ms)

    def _fetch(self, port: int, body: m.FetchRequest) -> m.FetchResponse:
        asked = body.topics[0].partitions[0]
        log = self.log.log
        answer = m.FetchResponse.PartitionData(
            current_leader=m.FetchResponse.LeaderIdAndEpoch(
                leader_id=-1 if self.leader is None else self.leader, leader_epoch=self.log.epoch
            )
        )
        if port != self.leader:
            answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif asked.current_leader_epoch < self.log.epoch:
            answer.error_code = ErrorCode.FENCED_LEADER_EPOCH
        elif asked.fetch_offset < log.log_start_offset:
            latest = self.log.snapshots.latest
            assert latest is not None
            answer.snapshot_id = m.FetchResponse.SnapshotId(end_offset=latest.end_offset, epoch=latest.epoch)
        else:
            self._records(asked, answer)
        found = m.FetchResponse.FetchableTopicResponse(partitions=[answer])
        endpoints = [] if self.leader is None else [self._endpoint(m.FetchResponse, self.leader)]
        return m.FetchResponse(responses=[found], node_endpoints=endpoints)

    def _endpoint(self, kind: Any, port: int) -> Any:
        return kind.NodeEndpoint(node_id=port, host="127.0.0.1", port=port)

    def _records(self, asked: Any, answer: Any) -> None:
        log = self.log.log
        end = log.end_of_epoch(asked.last_fetched_epoch)
        if asked.fetch_offset > 0 and (end.epoch != asked.last_fetched_epoch or end.end_offset < asked.fetch_offset):
            answer.diverging_epoch = m.FetchResponse.EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
            return
        answer.high_watermark = log.log_end_offset if self.high_watermark is None else self.high_watermark
        read = log.read(asked.fetch_offset, 1 << 20, at_least_one=True)
        answer.records = b"" if read.slice is None else read.slice.read()

    def _snapshot(self, body: m.FetchSnapshotRequest) -> m.FetchSnapshotResponse:
        asked = body.topics[0].partitions[0]
        latest = self.log.snapshots.latest
        assert latest is not None
        data = self.files.read(join(self.log.directory, latest.file_name))
        answer = m.FetchSnapshotResponse.PartitionSnapshot(
            snapshot_id=m.FetchSnapshotResponse.SnapshotId(end_offset=latest.end_offset, epoch=latest.epoch),
            current_leader=m.FetchSnapshotResponse.LeaderIdAndEpoch(
                leader_id=self.leader or -1, leader_epoch=self.log.epoch
            ),
            size=len(data),
            position=asked.position,
            unaligned_records=data[asked.position : asked.position + 100],
        )
        topic = m.FetchSnapshotResponse.TopicSnapshot(partitions=[answer])
        return m.FetchSnapshotResponse(topics=[topic])


class Observing:
    """An observer of a quorum, with the network between them."""

    def __init__(self, quorum: PlayedQuorum, files: MemoryFiles | None = None, ports: Sequence[int] = PORTS) -> None:
        self.quorum = quorum
        self.files = files or MemoryFiles()
        self.outbox = Outbox()
        self.now_ms = 100
        self.changes: list[Any] = []
        self.log = ObservedLog(
            self.files, "/data", DirectoryIdentity(CLUSTER, 7, DIRECTORY), MetadataLogSettings(), now_ms=100
        )
        settings = ObserverSettings([ControllerAddress("127.0.0.1", port) for port in ports], "CONTROLLER")
        self.observer = QuorumObserver(
            self.log, self.outbox, settings, on_change=lambda change, now_ms: self.changes.append(change)
        )
        self.observer.start(self.now_ms)

    def step(self) -> None:
        """Respond to every request. Without requests, advance the time to the next deadline."""
        requests = self.outbox.take_requests()
        for request in requests:
            self.quorum.answer(request, self.now_ms)
        if not requests:
            due_ms = self.observer.next_deadline_ms()
            assert due_ms is not None, "the observer has neither a request nor a deadline"
            self.now_ms = max(due_ms, self.now_ms)
            self.observer.tick(self.now_ms)

    def run(self, steps: int = 60) -> None:
        for _ in range(steps):
            self.step()

    def fail(self, failure: Failure = Failure.LOST) -> None:
        for request in self.outbox.take_requests():
            request.failed(failure, self.now_ms)
