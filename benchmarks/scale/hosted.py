"""Replicas on one broker: the cost of each in memory, descriptors and time, at a start and while idle."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from benchmarks.scale.child import cpu_s, cpu_us, freeze_heap, memory_mb
from benchmarks.scale.member import PlayedCluster, open_member
from benchmarks.scale.world import World
from tailrace.broker.broker import Broker
from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.metrics.exposition import pieces
from tailrace.protocol.headers import RequestHeader, read_response_header, write_request_header
from tailrace.protocol.messages import BrokerHeartbeatResponse, FetchRequest, FetchResponse
from tailrace.records.builder import BatchBuilder

FETCH_KEY = 1
FETCH_VERSION = 17
FETCH_WAIT_MS = 500
HEARTBEAT_VERSION = BrokerHeartbeatResponse.SCHEMA.versions.high


def start(directory: str, how: str) -> dict[str, float]:
    """Start a broker. `how`: new (every log is created and gets a record), clean, or crashed. The directory is left
    unchanged.
    """
    cluster = PlayedCluster()
    kept: list[Broker] = []
    before_mb, files_before, maps_before = memory_mb(), _descriptors(), _maps()
    taken_s = cpu_s(lambda: kept.append(open_member(Path(directory), cluster)))
    freeze_heap()
    broker = kept[0]
    found = {
        "cpu_s": taken_s,
        "mb": memory_mb() - before_mb,
        "hosted": len(broker.services.partitions),
        "led": len(broker.services.partitions.leaders()),
        "descriptors": _descriptors() - files_before,
        "maps": _maps() - maps_before,
    }
    if how == "new":
        for partition in broker.services.partitions:
            batch = BatchBuilder()
            batch.append(cluster.now_ms, b"key", b"value")
            partition.log.append_as_leader(batch.build(), leader_epoch=0, now_ms=cluster.now_ms)
        found["close_s"] = cpu_s(lambda: broker.close(cluster.now_ms))
    else:
        broker.abandon()
        if how == "clean":
            (Path(directory) / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":0}')
    return found


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _maps() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


def prepare(world: str, directory: str) -> dict[str, float]:
    """Make a directory for broker 0 that has the metadata and no logs."""
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(f"{world}/log", directory)
    return {}


def passes(directory: str) -> dict[str, float]:
    """Return the CPU microseconds of periodic work while nothing happens."""
    cluster = PlayedCluster()
    broker = open_member(Path(directory), cluster)
    freeze_heap()
    cluster.answer(broker.outbox.take_requests())
    now_ms = cluster.now_ms
    housekeeping = broker.services.housekeeping
    directory_ = broker.services.logs.directories[0]
    found = {
        "hosted": len(broker.services.partitions),
        "tick_us": cpu_us(lambda: broker.tick(now_ms)),
        "deadline_us": cpu_us(broker.next_deadline_ms),
        "retention_us": cpu_us(lambda: housekeeping._apply_retention(directory_, now_ms)),
        "flush_us": cpu_us(lambda: housekeeping._flush_due(directory_, now_ms)),
        "checkpoint_us": cpu_us(lambda: housekeeping._checkpoint(directory_, now_ms)),
        "scrape_us": cpu_us(lambda: list(pieces(broker.metric_families(now_ms), "text/plain")), times=20),
    }
    assert broker.services.replication is not None
    proposals = broker.services.replication.proposals
    found["isr_check_us"] = cpu_us(
        lambda: [one.leader.lagging(now_ms) for one in proposals._partitions.leaders() if one.leader]
    )
    broker.abandon()
    return found


def rounds(directory: str, brokers: int, partitions: int) -> dict[str, float]:
    """Return the cost of sending follower fetches that return no records, per leader and round."""
    cluster = PlayedCluster()
    before = World(brokers, partitions)
    broker = open_member(Path(directory), cluster)
    freeze_heap()
    cluster.answer(broker.outbox.take_requests())
    replication = broker.services.replication
    assert replication is not None

    def one_round() -> None:
        replication.tick(cluster.now_ms)
        cluster.answer(broker.outbox.take_requests())
        cluster.answer_fetches()
        cluster.answer(broker.outbox.take_requests())

    one_round()
    leaders = len(cluster.fetches)
    taken_us = cpu_us(one_round, times=50)
    found = {
        "leaders": leaders,
        "followed": len(broker.services.partitions) - len(broker.services.partitions.leaders()),
        "partitions": before.partitions,
        "round_us": taken_us,
        "per_leader_us": taken_us / max(leaders, 1),
        "deadline_us": cpu_us(broker.next_deadline_ms),
    }
    broker.abandon()
    return found


def serving(directory: str, brokers: int, partitions: int) -> dict[str, float]:
    """Return the cost of serving follower fetches that return no records, each of which waits until its deadline."""
    cluster, world = PlayedCluster(), World(brokers, partitions)
    broker = open_member(Path(directory), cluster)
    freeze_heap()
    cluster.answer(broker.outbox.take_requests())
    wanted: dict[int, dict[bytes, list[int]]] = {}
    for partition in broker.services.partitions.leaders():
        number = int(partition.key.topic.partition("-")[2])
        for follower in world.replicas(number, partition.key.partition)[1:]:
            wanted.setdefault(follower, {}).setdefault(partition.topic_id, []).append(partition.key.partition)
    sessions = dict.fromkeys(wanted, (0, 0))

    def one_round() -> None:
        for follower, topics in wanted.items():
            session, epoch = sessions[follower]
            body = _follower_fetch(follower, session, epoch, {} if session else topics)
            header = write_request_header(RequestHeader(FETCH_KEY, FETCH_VERSION, 1, "scale"))
            frame = memoryview(bytearray(header + body.encode(FETCH_VERSION)))
            broker.handle(frame, ConnectionContext(follower), cluster.now_ms)
        cluster.now_ms += FETCH_WAIT_MS
        broker.tick(cluster.now_ms)
        replies = broker.take_replies()
        assert len(replies) >= len(wanted)
        for reply in replies:
            assert reply.parts is not None
            if not sessions[reply.connection_id][0]:
                data = b"".join(map(bytes, reply.parts))
                position = read_response_header(FETCH_KEY, FETCH_VERSION, data)[1]
                answer = FetchResponse.decode(data, FETCH_VERSION, position)
                sessions[reply.connection_id] = answer.session_id, 0
            session, epoch = sessions[reply.connection_id]
            sessions[reply.connection_id] = session, epoch + 1

    one_round()
    taken_us = cpu_us(one_round, times=20)
    found = {
        "followers": len(wanted),
        "led": len(broker.services.partitions.leaders()),
        "per_fetch_us": taken_us / len(wanted),
        "tick_us": cpu_us(lambda: broker.tick(cluster.now_ms)),
    }
    broker.abandon()
    return found


def _follower_fetch(follower: int, session: int, epoch: int, topics: dict[bytes, list[int]]) -> FetchRequest:
    partition = FetchRequest.FetchPartition
    return FetchRequest(
        replica_state=FetchRequest.ReplicaState(replica_id=follower, replica_epoch=follower),
        max_wait_ms=FETCH_WAIT_MS,
        min_bytes=1,
        session_id=session,
        session_epoch=epoch,
        topics=[
            FetchRequest.FetchTopic(
                topic_id=topic,
                partitions=[
                    partition(
                        partition=one, current_leader_epoch=0, fetch_offset=1, last_fetched_epoch=0, log_start_offset=0
                    )
                    for one in found
                ],
            )
            for topic, found in topics.items()
        ],
    )


def heartbeats(directory: str) -> dict[str, float]:
    """Return the cost of one heartbeat: made, encoded, its response decoded; without the socket."""
    cluster = PlayedCluster()
    broker = open_member(Path(directory), cluster)
    freeze_heap()
    assert cluster.controller is not None
    lifecycle = cluster.controller.lifecycle
    answer = BrokerHeartbeatResponse(is_caught_up=True).encode(HEARTBEAT_VERSION)

    def beat() -> None:
        request = lifecycle.next_request()
        request.encode(HEARTBEAT_VERSION)
        lifecycle.answered(request, BrokerHeartbeatResponse.decode(answer, HEARTBEAT_VERSION), cluster.now_ms)

    found = {"beat_us": cpu_us(beat), "bytes": len(lifecycle.next_request().encode(HEARTBEAT_VERSION))}
    broker.abandon()
    return found
