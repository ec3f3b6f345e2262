"""Member: a broker of a world, opened in this process. The controllers and the other brokers are simulated.

The whole broker is real, except for its sockets: a function takes its requests from the outbox and responds, in virtual
time. So CPU time is the broker's own, and an hour of a thousand brokers' events takes only as long as its work.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.scale.world import EPOCH, VERSIONS
from tailrace.broker.broker import Broker
from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.broker.startup.open_broker import open_broker
from tailrace.log.disk.files import DiskFiles
from tailrace.metadata.controller.remote_controller import RemoteController
from tailrace.metadata.storage.record_framing import build_batch
from tailrace.protocol import messages as m
from tailrace.protocol.message import Message
from tailrace.replication.fetching.replica_fetcher import CHANNEL as REPLICA_FETCH
from tailrace.waiting.outbox import OutgoingRequest

NOW_MS = 1_800_000_000_000
CONTROLLER = m.FetchResponse.NodeEndpoint(node_id=3000, host="127.0.0.1", port=1)
SETTINGS = {
    "process.roles": "broker",
    "controller.quorum.bootstrap.servers": "127.0.0.1:1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
}


class PlayedCluster:
    """The simulated peers: controllers whose log is the broker's plus the added records, and leaders without new
    records.
    """

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.controller: RemoteController | None = None
        self.fetches: list[OutgoingRequest] = []  # unanswered fetches at leaders
        self.asked: dict[str, int] = {}  # number of requests of each kind
        self._batches: list[tuple[int, bytes]] = []  # with their offsets
        self._metadata_fetch: OutgoingRequest | None = None
        self._sessions = count(1)
        self._is_joined = False

    # The interface for `open_broker`

    def follow(self, controller: RemoteController) -> None:
        self.controller = controller

    def join(self, controller: RemoteController | None = None) -> None:
        self.controller = controller or self.controller
        self._is_joined = True

    def call_soon(self, function: Callable[[], None]) -> bool:
        return False

    def stop(self) -> None: ...

    def run_until(self, is_so: Callable[[], bool], what: str) -> int:
        assert self.controller is not None
        for _ in range(1_000):
            if is_so():
                return self.now_ms
            self.answer(self.controller.outbox.take_requests())
            self._answer_metadata()
            if self._is_joined:
                self.beat()
            self.controller.tick(self.now_ms)
            self.now_ms += 1
        raise AssertionError(f"not met in time: {what}")

    def beat(self) -> None:
        assert self.controller is not None
        lifecycle = self.controller.lifecycle
        request = lifecycle.next_request()
        if isinstance(request, m.BrokerRegistrationRequest):
            lifecycle.answered(request, m.BrokerRegistrationResponse(broker_epoch=request.broker_id), self.now_ms)
        else:
            response = m.BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False, should_shut_down=False)
            lifecycle.answered(request, response, self.now_ms)

    # Responses

    def answer(self, requests: Sequence[OutgoingRequest]) -> None:
        for request in requests:
            name = request.body.SCHEMA.name
            self.asked[name] = self.asked.get(name, 0) + 1
            if request.peer.channel == REPLICA_FETCH:
                self.fetches.append(request)
            elif isinstance(request.body, m.FetchRequest):
                self._metadata_fetch = request
            elif isinstance(request.body, m.AlterPartitionRequest):
                request.answered(_accepted(request.body), self.now_ms)
            elif isinstance(request.body, m.AllocateProducerIdsRequest):
                request.answered(m.AllocateProducerIdsResponse(producer_id_start=0, producer_id_len=1000), self.now_ms)
            else:
                raise AssertionError(f"nobody plays {name}")

    def answer_fetches(self) -> int:
        """Let every leader respond without new records, and return the number of responses."""
        fetches, self.fetches = self.fetches, []
        for request in fetches:
            body: Any = request.body
            session = body.session_id or next(self._sessions)
            request.answered(m.FetchResponse(session_id=session), self.now_ms)
        return len(fetches)

    def add(self, groups: Sequence[Sequence[Message]]) -> int:
        """Append batches of records to the controller's log, and return their size in bytes."""
        assert self.controller is not None
        offset = self._batches[-1][0] if self._batches else self.controller.log.end_offset
        size = 0
        for group in groups:
            data = build_batch(group, VERSIONS, base_offset=offset, leader_epoch=EPOCH, timestamp_ms=self.now_ms)
            offset += len(group)
            size += len(data)
            self._batches.append((offset, data))
        return size

    def deliver(self) -> None:
        """Deliver all added records to the broker, in one response."""
        self._answer_metadata()
        assert self.controller is not None
        self.answer(self.controller.outbox.take_requests())

    def _answer_metadata(self) -> None:
        assert self.controller is not None
        request, self._metadata_fetch = self._metadata_fetch, None
        if request is None:
            return
        end = self._batches[-1][0] if self._batches else self.controller.log.end_offset
        records = b"".join(data for _, data in self._batches)
        self._batches.clear()
        answer = m.FetchResponse.PartitionData(
            high_watermark=end,
            records=memoryview(records),
            current_leader=m.FetchResponse.LeaderIdAndEpoch(leader_id=3000, leader_epoch=EPOCH),
        )
        topic = m.FetchResponse.FetchableTopicResponse(partitions=[answer])
        request.answered(m.FetchResponse(responses=[topic], node_endpoints=[CONTROLLER]), self.now_ms)


def _accepted(body: m.AlterPartitionRequest) -> m.AlterPartitionResponse:
    response = m.AlterPartitionResponse
    return response(
        topics=[
            response.TopicData(
                topic_id=topic.topic_id,
                partitions=[
                    response.PartitionData(
                        partition_index=one.partition_index,
                        leader_epoch=one.leader_epoch,
                        partition_epoch=one.partition_epoch + 1,
                        isr=[member.broker_id for member in one.new_isr_with_epochs],
                    )
                    for one in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def open_member(directory: Path, cluster: PlayedCluster) -> Broker:
    """Open broker 0 on a directory that has the metadata log of a world."""
    dice = random.Random(1)
    return open_broker(
        DiskFiles(),
        BrokerConfig.of(log_dirs=[str(directory)], port=9092, settings={**SETTINGS, "node.id": "0"}),
        now_ms=cluster.now_ms,
        new_id=lambda: dice.randbytes(16),
        next_int=dice.randrange,
        bound={"PLAINTEXT": 20_000},
        network=cluster,
    )
