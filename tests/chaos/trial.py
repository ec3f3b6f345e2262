"""One trial: a cluster under load, a plan of faults, and the checks after all nodes are back.

    report = Trial(installation, directory, Shape(controllers=3), seed=7, seconds=3600).run()
    assert report.findings == []

The load consists of idempotent producers, transactional producers that commit and abort, and transformers that consume
and produce in one transaction. Readers of both isolation levels read along. Afterwards every replica must be in sync
and have the same bytes, no transaction may be open, and the checks of `checks.py` must hold.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from tests.chaos.checks import (
    Log,
    check_atomic,
    check_idempotent,
    check_offsets,
    check_seen,
    check_transactions,
    check_transformed,
)
from tests.chaos.cluster import ChaosCluster, Shape, await_so
from tests.chaos.faults import Faults
from tests.chaos.findings import Findings, Late
from tests.chaos.plan import Fault, make_plan
from tests.chaos.producers import IdempotentLoad
from tests.chaos.transactions import STUCK_S as STUCK_CALL_S
from tests.chaos.transactions import TransactionalLoad
from tests.chaos.transform import Transformer
from tests.chaos.watchers import ISOLATIONS, Reader, Watermarks
from tests.support.kafka_install import KafkaInstallation

TOPICS: Final = {"plain": 3, "input": 2, "output": 2, "transactions": 3}
TOPIC_CONFIG: Final = {"min.insync.replicas": "2", "segment.bytes": "1048576", "retention.ms": "-1"}
PATIENCE_S: Final = 180.0
STUCK_S: Final = 240.0
PROGRESS_S: Final = 10.0


@dataclass(slots=True)
class Report:
    findings: list[str]
    faults: dict[str, int]
    figures: dict[str, int] = field(default_factory=dict)
    is_only_late: bool = False  # all findings are about time; no result was wrong

    def __str__(self) -> str:
        lines = [f"faults: {sum(self.faults.values())}", *(f"  {kind}: {n}" for kind, n in sorted(self.faults.items()))]
        lines += [f"{name}: {count}" for name, count in self.figures.items()]
        return "\n".join(
            lines + [f"FINDING {one}" for one in self.findings] + ([] if self.findings else ["all checks passed"])
        )


class Trial:
    def __init__(
        self,
        installation: KafkaInstallation,
        directory: Path,
        shape: Shape,
        *,
        seed: int,
        seconds: float,
        plan: list[Fault] | None = None,
        print_line: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._print_line = print_line
        self._seed = seed
        self.findings = Findings()
        self._cluster = ChaosCluster(installation, directory, shape)
        names = [one.name for one in self._cluster.brokers]
        self.plan = make_plan(seed, seconds, names, shape.controllers) if plan is None else plan
        self._faults = Faults(self._cluster, self.plan, self.findings, print_line)
        self._idempotent: list[IdempotentLoad] = []
        self._transactional: list[TransactionalLoad] = []
        self._transformers: list[Transformer] = []
        self._readers: list[Reader] = []
        self._watermarks: Watermarks | None = None
        self._progress: tuple[float, tuple[int, ...]] = (0.0, ())
        self._printed_s = 0.0
        self._began = 0.0

    def run(self) -> Report:
        try:
            self._cluster.start()
            self._start_load()
            self._began = time.monotonic()
            self._faults.run(self._is_over)
            if not self.findings.found:
                self._print_line("all faults are repaired")
                self._cluster.clear_weather()
                self._end_load()
                self._check()
        except AssertionError as error:
            self.findings.add(str(error), is_late=isinstance(error, Late))
        finally:
            self._cluster.close()
        found = self.findings.found
        is_only_late = bool(found) and self.findings.are_all_late
        return Report(found, dict(self._faults.counts), self._figures(), is_only_late)

    # Load

    def _start_load(self) -> None:
        where, findings, seed = self._cluster.bootstrap, self.findings, self._seed
        for topic, partitions in TOPICS.items():
            self._cluster.create(topic, partitions, dict(TOPIC_CONFIG))
        self._cluster.await_in_sync()
        self._idempotent = [
            IdempotentLoad(where, name, topic, TOPICS[topic], findings, pause_s)
            for name, topic, pause_s in (("a", "plain", 0.02), ("b", "plain", 0.05), ("c", "input", 0.05))
        ]
        self._transactional = [
            TransactionalLoad(where, f"t{one}", "transactions", TOPICS["transactions"], findings, seed)
            for one in range(3)
        ]
        self._transformers = [
            Transformer(where, f"transformer-{one}", "input", "output", findings, seed) for one in range(2)
        ]
        self._readers = [Reader(where, TOPICS, isolation, findings) for isolation in ISOLATIONS]
        self._watermarks = Watermarks(where, TOPICS, findings)
        for one in [*self._loads(), *self._readers, self._watermarks]:
            one.worker.start()

    def _loads(self) -> list[IdempotentLoad | TransactionalLoad | Transformer]:
        return [*self._idempotent, *self._transactional, *self._transformers]

    def _figures(self) -> dict[str, int]:
        return {
            "records acknowledged": sum(one.acknowledged for one in self._idempotent),
            "transactions committed": sum(len(one.committed) for one in self._transactional),
            "transactions aborted": sum(len(one.aborted) for one in self._transactional),
            "transactions with an unknown outcome": sum(len(one.unknown) for one in self._transactional),
            "transactional producers that were replaced": sum(one.fenced for one in self._transactional),
            "zombies fenced": sum(one.zombies for one in self._transactional),
            "records transformed": sum(one.transformed for one in self._transformers),
            "transformations done again": sum(one.done_again for one in self._transformers),
            **{f"records seen by {one.isolation}": one.count for one in self._readers},
            "clients renewed": sum(one.renewals for one in self._readers)
            + sum(len(one.instances) - 1 for one in self._idempotent),
            "watermarks compared": 0 if self._watermarks is None else self._watermarks.answers,
        }

    def _is_over(self) -> bool:
        """Return True if something was found. Print the progress from time to time."""
        self._replace_stuck()
        now = time.monotonic()
        figures = self._figures()
        progress = (figures["records acknowledged"], figures["transactions committed"], figures["records transformed"])
        if progress != self._progress[1]:
            self._progress = (now, progress)
        elif now - self._progress[0] > STUCK_S:
            text = f"nothing was acknowledged for {STUCK_S:g} s. {self._places()}"
            self.findings.add(text, is_late=True)
        if now - self._printed_s > PROGRESS_S:
            self._printed_s = now
            short = " ".join(str(count) for count in figures.values())
            self._print_line(f"{now - self._began:6.0f} s  {short}  {'; '.join(self._faults.now.values())}")
        return bool(self.findings.found)

    def _places(self) -> str:
        """Return the current stack and the last error of each transactional client."""
        some = [*self._transactional, *self._transformers]
        return "\n".join(f"{one.worker.name}: last error {one.last_error!r}, stack\n{one.worker.place}" for one in some)

    def _end_load(self) -> None:
        self._cluster.await_in_sync()
        for one in [*self._idempotent, *self._transactional]:
            one.worker.end(PATIENCE_S)
        for load in self._idempotent:
            load.flush(PATIENCE_S)
        self._await_transformed()
        for transformer in self._transformers:
            # Its work is done. A client that knows no broker may not return from a call; such a thread is left running.
            if transformer.worker.end(STUCK_CALL_S, must_end=False):
                transformer.close()
            else:
                self._print_line(
                    f"{transformer.worker.name} does not end and is left running at\n{transformer.worker.place}"
                )

    def _await_transformed(self) -> None:
        """Wait until all input is visible among the committed output."""
        keys = [("input", one) for one in range(TOPICS["input"])]
        wanted = sum(len(self._read(*key, ISOLATIONS[0])) for key in keys)
        reader = self._readers[1]
        counts = [0]

        def is_done() -> bool:
            self._replace_stuck()
            counts.append(sum(len(reader.seen["output", one].offsets) for one in range(TOPICS["output"])))
            return counts[-1] >= wanted or bool(self.findings.found)

        await_so(
            is_done, "all input is transformed", lambda: f"{counts[-1]} of {wanted}. {self._places()}", patience_s=400
        )

    def _replace_stuck(self) -> None:
        """Replace clients that do not return from a call."""
        for loads in (self._transactional, self._transformers):
            for place, one in enumerate(loads):
                if one.worker.step_s > STUCK_CALL_S:
                    self._print_line(f"{one.worker.name} is stuck and is replaced. Its stack:\n{one.worker.place}")
                    loads[place] = one.successor()
                    loads[place].worker.start()

    # Checks

    def _check(self) -> None:
        cluster, findings = self._cluster, self.findings
        cluster.await_in_sync()
        self._await_no_open_transaction()
        logs = {
            isolation: {
                (topic, one): self._read(topic, one, isolation) for topic in TOPICS for one in range(TOPICS[topic])
            }
            for isolation in ISOLATIONS
        }
        self._await_readers(logs)
        everything, committed = (logs[isolation] for isolation in ISOLATIONS)
        for (topic, one), log in everything.items():
            self._report(check_offsets(f"{topic}-{one}", log))
        for load in self._idempotent:
            for instance in load.instances:
                for one, offsets in enumerate(instance.offsets):
                    log = everything[load.topic, one]
                    self._report(check_idempotent(f"{load.topic}-{one}", log, instance.name, offsets))
        for writer in self._transactional:
            seen: dict[int, set[int]] = {}
            for one in range(TOPICS[writer.topic]):
                where, log = f"{writer.topic}-{one}", committed[writer.topic, one]
                self._report(check_transactions(where, one, log, writer.name, writer.committed, writer.aborted))
                mark = writer.name.encode() + b" "
                seen[one] = {int(value.split(b" ")[1]) for _, value in log if value.startswith(mark)}
            self._report(check_atomic(writer.name, writer.unknown, seen))
        for one in range(TOPICS["input"]):
            self._report(check_transformed(f"output-{one}", everything["input", one], committed["output", one]))
        for reader in self._readers:
            for key, what in reader.seen.items():
                self._report(check_seen(f"{key} {reader.isolation}", logs[reader.isolation][key], what))
        partitions = cluster.await_same_bytes()
        if not findings.found:
            self._print_line(f"{partitions} partitions have the same bytes on all brokers")

    def _report(self, reasons: Iterable[str]) -> None:
        for one in reasons:
            self.findings.add(one)

    def _await_no_open_transaction(self) -> None:
        watermarks = self._watermarks
        assert watermarks is not None
        keys = [(topic, one) for topic, count in TOPICS.items() for one in range(count)]

        def open_ones() -> list[str]:
            marks = {key: [watermarks.marks[isolation, key] for isolation in ISOLATIONS] for key in keys}
            return [f"{key}: {ends}" for key, ends in marks.items() if ends[0] != ends[1]]

        answers = watermarks.answers
        await_so(lambda: watermarks.answers > answers + 4 * len(keys), "watermarks are reported")
        await_so(lambda: not open_ones(), "no transaction is open", lambda: f"{open_ones()}")
        watermarks.worker.end(30)

    def _await_readers(self, logs: dict[str, dict[tuple[str, int], Log]]) -> None:
        for reader in self._readers:
            wanted = sum(len(log) for log in logs[reader.isolation].values())

            def is_done(reader: Reader = reader, wanted: int = wanted) -> bool:
                return reader.count >= wanted or bool(self.findings.found)

            await_so(
                is_done, f"the {reader.isolation} reader is at the end", lambda r=reader, w=wanted: f"{r.count} of {w}"
            )
            reader.worker.end(30)
            reader.close()

    def _read(self, topic: str, partition: int, isolation: str) -> Log:
        """Read a whole partition, at the end of the trial."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._cluster.bootstrap,
                "group.id": "nobody",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        read: list[tuple[int, bytes]] = []
        deadline = time.monotonic() + PATIENCE_S
        try:
            consumer.assign([TopicPartition(topic, partition, 0)])
            while time.monotonic() < deadline:
                for message in consumer.consume(10_000, 0.5):
                    error = message.error()
                    if error is None:
                        read.append((message.offset(), message.value()))
                    elif error.name() == "_PARTITION_EOF":
                        return read
            raise Late(f"{topic}-{partition} has no end: {len(read)} records after {PATIENCE_S:g} s")
        finally:
            consumer.close()
