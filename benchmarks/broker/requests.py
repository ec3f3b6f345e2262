"""Tiny requests: CPU time of each, and how many per second."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.broker import frames
from benchmarks.broker.comparison import Comparison, compare, take_turns
from benchmarks.broker.contenders import Contender, cpu_s, delete_topic, make_topic
from benchmarks.broker.load import run_requests, send_each, send_many

TITLE = "Broker: tiny requests"
TEXT = (
    "One record of 100 bytes per request. Produce with acks=all; Fetch without a session, of one such batch. The "
    "rows give the number of connections times the requests in flight on each. CPU is the broker's, of all its "
    "threads, per request. Requests per second depend on the other work of the machine."
)
SECONDS = 3.0
# of each kind, for just-in-time compilers; a number and not a time, because a busy machine has slow seconds
WARM_UP_REQUESTS = 100_000
LOADS = ((1, 1), (1, 100), (8, 1), (1_000, 1))


@dataclass(frozen=True)
class RequestCost:
    cpu_us: float
    per_second: float

    @property
    def cost(self) -> float:
        return self.cpu_us

    def __str__(self) -> str:
        return f"{self.cpu_us:.1f} µs, {self.per_second / 1000:.1f} k/s"


def run(contenders: list[Contender], rounds: int) -> list[Comparison]:
    rows = []
    produce = {one.name: frames.produce(make_topic(one, "tiny"), frames.batch(100, 100)) for one in contenders}
    ids = {one.name: make_topic(one, "tiny-read") for one in contenders}
    for one in contenders:
        sent = [frames.produce(ids[one.name], frames.batch(100, 100))] * 100
        send_each(one.port, sent, error_at=frames.PRODUCE_ERROR_AT)
    # max_bytes lets one batch fit.
    fetch = {name: frames.fetch(topic_id, [(0, 5)], max_bytes=150) for name, topic_id in ids.items()}
    works = (("produce", produce, frames.PRODUCE_ERROR_AT, 0.15), ("fetch", fetch, frames.FETCH_ERROR_AT, 0.3))
    for work, sent, error_at, goal in works:
        for one in contenders:
            if not one.is_warmed_up:
                send_many(one.port, sent[one.name], WARM_UP_REQUESTS, connections=8, in_flight=10)
        for connections, in_flight in LOADS:

            def measure(
                one: Contender,
                seconds: float = SECONDS,
                sent: dict[str, bytes] = sent,
                error_at: tuple[int, ...] = error_at,
                connections: int = connections,
                in_flight: int = in_flight,
            ) -> RequestCost:
                before = cpu_s(one.pid)
                result = run_requests(
                    one.port,
                    [sent[one.name]],
                    connections=connections,
                    in_flight=in_flight,
                    seconds=seconds,
                    error_at=error_at,
                )
                cpu = cpu_s(one.pid) - before
                return RequestCost(cpu / result.requests * 1e6, result.requests / result.wall_s)

            for one in contenders:
                if not one.is_warmed_up:
                    measure(one)
            figures = take_turns(contenders, rounds, measure)
            rows.append(compare(f"{work}, {connections:,} × {in_flight}", dict(figures), at_most=goal))
    for one in contenders:
        delete_topic(one, "tiny")
        delete_topic(one, "tiny-read")
    return rows
