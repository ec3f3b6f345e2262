"""`tailrace serve` with a small limit of descriptors and more idle connections than that."""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path
from typing import Any

from tailrace.protocol import messages as m
from tests.support.api_twins import KafkaSide
from tests.support.batches import batch
from tests.support.tailrace_process import TailraceProcess

FEW = ["sh", "-c", 'ulimit -n 160 && exec "$@"', "sh"]
ATTACKERS = 300


def produce(wire: KafkaSide, topic: str, value: bytes) -> int:
    request = m.ProduceRequest(acks=-1, timeout_ms=1000)
    data = request.PartitionProduceData(index=0, records=bytes(batch(value)))
    request.topic_data = [request.TopicProduceData(name=topic, partition_data=[data])]
    return int(ask(wire, request, 9).responses[0].partition_responses[0].error_code)


def create(wire: KafkaSide, name: str) -> int:
    topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=4, replication_factor=1)
    config = m.CreateTopicsRequest.CreatableTopicConfig(name="segment.bytes", value="1048576")
    topic.configs = [config]
    (made,) = ask(wire, m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5).topics
    return int(made.error_code)


def ask(wire: KafkaSide, request: Any, version: int) -> Any:
    answer = wire.ask(request, version)
    assert answer is not None, "the broker closed the connection"
    return answer


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_idle_connections_beyond_the_limit_leave_descriptors_for_files(tmp_path: Path) -> None:
    with TailraceProcess(tmp_path / "data", "-o", "tailrace.metrics.port=0", wrapper=FEW) as broker:
        assert broker.process is not None
        pid = broker.process.pid
        honest = KafkaSide(broker.port)
        assert create(honest, "first") == 0
        attackers = []
        with contextlib.ExitStack() as held:
            for number in range(ATTACKERS):
                attacker = held.enter_context(socket.socket())
                attacker.setblocking(False)
                attacker.connect_ex(("127.0.0.1", broker.port))
                attackers.append(attacker)
                if number % 20 == 0:
                    time.sleep(0.02)
            time.sleep(0.5)
            assert len(list(Path(f"/proc/{pid}/fd").iterdir())) <= 160 - 64
            before_s = cpu_s(pid)
            began_s = time.monotonic()
            time.sleep(1)
            assert cpu_s(pid) - before_s < 0.5 * (time.monotonic() - began_s), "the loop spins"
            # The earlier connection still works: new topics, records, and new segments.
            assert create(honest, "second") == 0
            for name in ("first", "second"):
                assert {produce(honest, name, b"x" * 700_000) for _ in range(6)} == {0}
            assert len(list((tmp_path / "data" / "second-0").glob("*.log"))) > 2
        # The attackers have disconnected: a new connection is served.
        assert ask(KafkaSide(broker.port), m.ApiVersionsRequest(), 0).error_code == 0
        assert broker.process.poll() is None
        assert "Traceback" not in broker.errors
        assert "offline" not in broker.errors
        assert broker.stop() == 0
