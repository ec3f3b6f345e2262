"""The time until a broker has loaded a million committed offsets: `python -m benchmarks.offsets_load`.

The offsets are written, a hundred partitions for each of many groups, and the broker is killed and started again. The
time is from the start of its process until OffsetFetch succeeds for a group of every partition of `__consumer_offsets`.
The time of a start without any offsets is subtracted. CPU is the broker's.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.broker.contenders import Contender, Kafka, Tailrace, cpu_s, make_topic
from tailrace.coordinator.key_partition import partition_of
from tailrace.protocol.messages import FindCoordinatorRequest, OffsetCommitRequest, OffsetFetchRequest
from tests.support.raw_client import RawClient

PARTITIONS = 100
OFFSETS_PARTITIONS = 50
_LOADING = 14
_Partition = OffsetCommitRequest.OffsetCommitRequestPartition
_Topic = OffsetCommitRequest.OffsetCommitRequestTopic


def ready(contender: Contender, groups: list[str]) -> tuple[float, float]:
    """Return (seconds until every group's offsets can be fetched, the broker's CPU seconds), from the start of its
    process.
    """
    began = time.perf_counter()
    contender.start()
    with RawClient(f"127.0.0.1:{contender.port}") as client:
        for group in groups:
            asked = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)]
            deadline = time.monotonic() + 120
            while client.ask(OffsetFetchRequest(groups=asked), 8).groups[0].error_code:
                assert time.monotonic() < deadline, f"{group} was not loaded in two minutes"
                time.sleep(0.005)
    return time.perf_counter() - began, cpu_s(contender.pid)


def commit(contender: Contender, topic_id: bytes, groups: int) -> None:
    with RawClient(f"127.0.0.1:{contender.port}") as client:
        for number in range(groups):
            parts = [
                _Partition(partition_index=index, committed_offset=number, committed_metadata="")
                for index in range(PARTITIONS)
            ]
            topics = [_Topic(topic_id=topic_id, partitions=parts)]
            request = OffsetCommitRequest(group_id=f"group-{number}", generation_id_or_member_epoch=-1, topics=topics)
            answer = client.ask(request, 10)
            assert not any(one.error_code for one in answer.topics[0].partitions)


def find_coordinator(contender: Contender) -> None:
    with RawClient(f"127.0.0.1:{contender.port}") as client:
        while client.ask(FindCoordinatorRequest(key="any"), 1).error_code:
            time.sleep(0.05)
        while client.ask(OffsetFetchRequest(group_id="any", topics=None), 2).error_code:
            time.sleep(0.05)


def measure(contender: Contender, groups: int, rounds: int) -> tuple[float, float]:
    """Return the cost of the offsets in seconds and CPU seconds: the best of some starts with them, less the best
    without.
    """
    asked: dict[int, str] = {}
    for number in range(groups):
        asked.setdefault(partition_of(f"group-{number}", OFFSETS_PARTITIONS), f"group-{number}")
    contender.start()
    topic_id = make_topic(contender, "committed", PARTITIONS)
    find_coordinator(contender)
    contender.stop()
    empty = _best(contender, list(asked.values()), rounds)
    contender.start()
    find_coordinator(contender)
    commit(contender, topic_id, groups)
    contender.stop()
    full = _best(contender, list(asked.values()), rounds)
    print(f"  {contender.name}: {empty[0]:.2f} s, CPU {empty[1]:.2f} s without; {full[0]:.2f} s, {full[1]:.2f} s with")
    return full[0] - empty[0], full[1] - empty[1]


def _best(contender: Contender, groups: list[str], rounds: int) -> tuple[float, float]:
    found = []
    for _ in range(rounds):
        found.append(ready(contender, groups))
        contender.stop()
    return min(wall for wall, _ in found), min(cpu for _, cpu in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--offsets", type=int, default=1_000_000, help="number of offsets (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="number of starts of each kind; the best counts")
    arguments = parser.parse_args()
    groups = arguments.offsets // PARTITIONS
    root = Path(tempfile.mkdtemp(prefix="tailrace-offsets-load-"))
    try:
        results = []
        for kind in (Tailrace, Kafka):
            directory = root / kind.__name__
            directory.mkdir()
            results.append(measure(kind(directory), groups, arguments.rounds))
        (ours, ours_cpu), (kafkas, kafkas_cpu) = results
        print(
            f"{groups * PARTITIONS} offsets: Tailrace {ours:.2f} s, CPU {ours_cpu:.2f} s; "
            f"Kafka {kafkas:.2f} s, CPU {kafkas_cpu:.2f} s; "
            f"{ours / kafkas:.2f} of its time, {ours_cpu / kafkas_cpu:.2f} of its CPU"
        )
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
