"""kill -9 of the leader: the time until the next leader acknowledges the first record."""

from __future__ import annotations

import threading
import time
from typing import Any

from benchmarks.broker.comparison import Comparison
from benchmarks.cluster.clusters import BROKERS, LEADER, Cluster
from benchmarks.cluster.metadata_log import leader_changes
from benchmarks.cluster.producing import producer_for
from benchmarks.cluster.samples import Samples

TITLE = "Cluster: failover"
TEXT = (
    "A producer sends a record every 5 ms with acks=all, and the leader's process gets SIGKILL. The time is from "
    "there to the first record that the next leader acknowledges. The metadata log shows when the controller "
    "elected that leader, which divides the time into two parts. broker.session.timeout.ms is 9 s, the default."
)
KILLS = 5


class Load:
    """A producer that sends all the time, and the times of its acknowledgements."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = producer_for(bootstrap, linger_ms=0)
        self.acknowledged: list[float] = []  # times by the wall clock
        self.refused: list[Any] = []
        self._is_ending = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_ending:
            self._producer.produce(self._topic, bytes(100), partition=0, on_delivery=self._delivered)
            until = time.perf_counter() + 0.005
            while (left := until - time.perf_counter()) > 0:
                self._producer.poll(left)
        self._producer.flush(60)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.refused.append(error)
        else:
            self.acknowledged.append(time.time())

    def await_more(self, count: int) -> None:
        wanted = len(self.acknowledged) + count
        deadline = time.monotonic() + 60
        while len(self.acknowledged) < wanted:
            if time.monotonic() > deadline:
                raise RuntimeError("no further record is acknowledged")
            time.sleep(0.01)

    def end(self) -> None:
        self._is_ending = True
        self._thread.join()


def measure(cluster: Cluster, samples: Samples, *, quick: bool) -> None:
    topic = cluster.new_topic("failover", min_insync_replicas="2")
    load = Load(cluster.bootstrap, topic)
    try:
        load.await_more(400)
        for _ in range(2 if quick else KILLS):
            _kill_once(cluster, topic, load, samples)
    finally:
        load.end()
    if load.refused:
        raise RuntimeError(f"{len(load.refused)} records were refused: {load.refused[0]}")
    cluster.delete_topic(topic)


def _kill_once(cluster: Cluster, topic: str, load: Load, samples: Samples) -> None:
    known = len(leader_changes(cluster, topic))
    killed = time.time()
    cluster.kill(LEADER)
    while len(changes := leader_changes(cluster, topic)) == known:
        if time.time() - killed > 60:
            raise RuntimeError("no other leader was chosen")
        time.sleep(0.01)
    chosen = changes[known]
    while True:
        # The controller records whole milliseconds, and acknowledgements of the old leader came before it was fenced.
        first = next((one for one in load.acknowledged[:] if one > max(chosen, killed + 0.001)), None)
        if first is not None:
            break
        if time.time() - killed > 60:
            raise RuntimeError("nothing was acknowledged by the next leader")
        time.sleep(0.005)
    samples.add("all", cluster.kind, first - killed)
    samples.add("controller", cluster.kind, chosen - killed)
    samples.add("rest", cluster.kind, first - chosen)
    print(f"  {cluster.kind}: {chosen - killed:.3f} s + {first - chosen:.3f} s", flush=True)
    restarted = time.time()
    cluster.start(LEADER)
    cluster.await_isr(topic, BROKERS)
    samples.add("back", cluster.kind, time.time() - restarted)
    cluster.lead_again(topic)
    load.await_more(200)


def rows(samples: Samples) -> list[Comparison]:
    return [
        samples.row("all", lambda s: f"{s:.2f} s", at_most=0.7, title="kill -9 to the first acknowledged record"),
        samples.row("controller", lambda s: f"{s:.2f} s", title="until another leader was chosen"),
        samples.row("rest", lambda s: f"{s * 1e3:.0f} ms", at_most=0.7, title="from there, brokers and client"),
        samples.row("back", lambda s: f"{s:.2f} s", at_most=0.7, title="start of the killed one until in sync again"),
    ]
