"""End-to-end latency: from the time at which a record was due to be sent until a waiting consumer has it."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.broker import frames
from benchmarks.broker.comparison import Comparison, compare, take_turns
from benchmarks.broker.contenders import Contender, cpu_s, delete_topic, make_topic
from benchmarks.broker.load import LoadResult, run_latency
from benchmarks.broker.requests import RequestCost

TITLE = "Broker: latency"
TEXT = (
    "Records of 100 bytes are sent at a steady rate with acks=all, and a consumer waits for them with a Fetch on "
    "another connection. The time is measured from when a request was due, so a delay counts for all requests that "
    "wait. These are wall times: on a busy machine they depend more on its scheduler than on the brokers, and a "
    "broker with one thread gets a smaller share than one with many. The broker's CPU time per request, including "
    "the delivery to the consumer, does not depend on that."
)
SECONDS = 5.0
# Requests per second, records in each, number of connections.
RATES = ((1_000, 1, 1), (1_000, 10, 1), (10_000, 1, 10))


@dataclass(frozen=True)
class Latency:
    us: float

    @property
    def cost(self) -> float:
        return self.us

    def __str__(self) -> str:
        return f"{self.us / 1000:.2f} ms"


def run(contenders: list[Contender], rounds: int) -> list[Comparison]:
    rows = []
    for rate, records, producers in RATES:
        found: dict[str, list[LoadResult]] = {}
        costs: dict[str, list[float]] = {}
        numbers = {one.name: 0 for one in contenders}

        def measure(
            one: Contender,
            rate: int = rate,
            records: int = records,
            producers: int = producers,
            found: dict[str, list[LoadResult]] = found,
            costs: dict[str, list[float]] = costs,
            numbers: dict[str, int] = numbers,
        ) -> Latency:
            numbers[one.name] += 1
            topic = f"latency-{rate}-{records}-{numbers[one.name]}"
            topic_id = make_topic(one, topic)
            before = cpu_s(one.pid)
            result = run_latency(
                one.port,
                [frames.produce(topic_id, frames.batch(100 * records, 100))],
                frames.fetch(topic_id, [(0, 0)], max_bytes=1_048_576),
                producers=producers,
                rate=rate,
                seconds=SECONDS,
                offset_at=frames.offset_place(topic_id),
                offset=0,
            )
            used = cpu_s(one.pid) - before
            costs.setdefault(one.name, []).append(used / result.requests * 1e6)
            delete_topic(one, topic)
            found.setdefault(one.name, []).append(result)
            return Latency(result.p99_us)

        for one in contenders:
            if not one.is_warmed_up:
                measure(one)
                measure(one)
        found.clear()
        costs.clear()
        take_turns(contenders, rounds, measure)
        name = f"{rate * records:,} records/s, {records} in a request"
        for share, goal in (("p50", 0.5), ("p99", 0.5), ("p999", None)):
            middle = {
                one: sorted(getattr(result, f"{share}_us") for result in results)[len(results) // 2]
                for one, results in found.items()
            }
            figures = {one: Latency(us) for one, us in middle.items()}
            rows.append(compare(f"{name}: {share.replace('999', '99.9')}", dict(figures), at_most=goal))
        cpu = {one: RequestCost(sorted(used)[len(used) // 2], rate) for one, used in costs.items()}
        rows.append(compare(f"{name}: CPU of a request", dict(cpu)))
    return rows
