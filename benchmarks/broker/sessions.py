"""A thousand partitions: in one fetch session with nothing new, and in one full fetch."""

from __future__ import annotations

from benchmarks.broker import frames
from benchmarks.broker.comparison import Comparison, compare, take_turns
from benchmarks.broker.contenders import Contender, cpu_s, delete_topic, make_topic
from benchmarks.broker.load import run_requests, send_each
from benchmarks.broker.requests import RequestCost
from tailrace.protocol.messages import FetchRequest
from tests.support.raw_client import RawClient

TITLE = "Broker: a thousand partitions"
TEXT = (
    "A topic of 1,000 partitions with one small batch in each. The first row is a fetch session with all partitions "
    "at their ends, asked for new records when there are none. The second row is a Fetch without a session of one "
    "batch from every partition. CPU is the broker's, per request."
)
PARTITIONS = 1_000
SECONDS = 3.0


def run(contenders: list[Contender], rounds: int) -> list[Comparison]:
    ids = {}
    for one in contenders:
        ids[one.name] = topic_id = make_topic(one, "wide", PARTITIONS)
        records = frames.batch(100, 100)
        sent = [frames.produce(topic_id, records, partition=index) for index in range(PARTITIONS)]
        send_each(one.port, sent, error_at=frames.PRODUCE_ERROR_AT)

    def cost(one: Contender, sent: bytes, epoch_at: int = -1) -> RequestCost:
        before = cpu_s(one.pid)
        result = run_requests(one.port, [sent], seconds=SECONDS, epoch_at=epoch_at, error_at=(9,))
        return RequestCost((cpu_s(one.pid) - before) / result.requests * 1e6, result.requests / result.wall_s)

    def session(one: Contender) -> RequestCost:
        session_id = _open_session(one, ids[one.name])
        sent = frames.fetch(bytes(16), [], max_bytes=1_048_576, max_wait_ms=0, session_id=session_id, session_epoch=1)
        return cost(one, sent, frames.epoch_place())

    def full(one: Contender) -> RequestCost:
        every = [(index, 0) for index in range(PARTITIONS)]
        return cost(one, frames.fetch(ids[one.name], every, max_bytes=1_048_576, max_wait_ms=0))

    rows = []
    for name, work in (("session without news", session), ("full fetch, 1,000 small batches", full)):
        for one in contenders:
            if not one.is_warmed_up:
                work(one)
                work(one)
        rows.append(compare(name, dict(take_turns(contenders, rounds, work))))
    for one in contenders:
        delete_topic(one, "wide")
    return rows


def _open_session(one: Contender, topic_id: bytes) -> int:
    partitions = [
        FetchRequest.FetchPartition(partition=index, fetch_offset=1, partition_max_bytes=1_048_576)
        for index in range(PARTITIONS)
    ]
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=52_428_800,
        session_epoch=0,
        topics=[FetchRequest.FetchTopic(topic_id=topic_id, partitions=partitions)],
    )
    with RawClient(f"127.0.0.1:{one.port}") as client:
        opened = client.ask(request, frames.FETCH_VERSION)
    if opened.error_code or not opened.session_id:
        raise RuntimeError(f"{one.name} opened no session: error {opened.error_code}")
    return int(opened.session_id)
