"""LogOracle: Apache Kafka's own log, cleaner and record code, driven from Python in one JVM.

    with LogOracle(kafka_installation()) as oracle:
        log = oracle.open(tmp_path / "topic-0", {"internal.segment.bytes": "1000"})
        log.append_as_leader(oracle.build_batch([OracleRecord(key=b"k", value=b"v", timestamp=5)]))
        log.close()

Every call is one line to the JVM and one line back (`java/LogOracle.java`); a Java exception becomes an
`OracleError`. The clock has the value `now_ms` until it is moved. Work that Kafka schedules runs as soon as it is
due, after the call that scheduled it or moved the clock; with `tasks_run_themselves(False)` only `run_tasks`
runs it.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.kafka_client import KafkaClient
from tests.support.kafka_install import JVM_FLAGS, KafkaInstallation
from tests.support.oracle_log import OracleLog
from tests.support.oracle_types import (
    Codec,
    FilterResult,
    OracleBatch,
    OracleError,
    OracleRecord,
    Origin,
    Producer,
    TimestampType,
    ValidationResult,
    from_base64,
    to_base64,
)

START_MS = 1_700_000_000_000


class LogOracle:
    def __init__(self, installation: KafkaInstallation, jvm_flags: Sequence[str] = JVM_FLAGS) -> None:
        command = installation.command("LogOracle", classes=installation.compiled_classes(), jvm_flags=jvm_flags)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True
        )
        self.reset()

    def call(self, op: str, **arguments: Any) -> Any:
        """Send one command, and return its result. Arguments that are None are left out."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({"op": op, **{name: value for name, value in arguments.items() if value is not None}})
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            raise AssertionError(f"the oracle died in {op}:\n{self.stderr()}")
        parsed = json.loads(answer)
        if "error" in parsed:
            raise OracleError(parsed["error"])
        return parsed["result"]

    @property
    def pid(self) -> int:
        return self._process.pid

    def stderr(self) -> str:
        """Return the warnings and errors that Kafka and the JVM logged."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")[-20_000:]

    def close(self) -> None:
        """End the JVM. Open logs are left as after a crash."""
        assert self._process.stdin is not None
        if self._process.poll() is None:
            self._process.stdin.close()
            self._process.wait(30)

    def __enter__(self) -> LogOracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- time and background work ---

    def reset(self, now_ms: int = START_MS) -> None:
        """Abandon every open log and set the clock, for the next test."""
        self.call("reset", now_ms=now_ms)

    @property
    def now_ms(self) -> int:
        return int(self.call("now"))

    @now_ms.setter
    def now_ms(self, value: int) -> None:
        self.call("set_clock", now_ms=value)

    def advance(self, ms: int) -> int:
        """Move the clock, run the tasks that became due, and return the new time."""
        self.now_ms = now = self.now_ms + ms
        return now

    def tasks_run_themselves(self, value: bool) -> None:
        self.call("tasks_run_themselves", value=value)

    def run_tasks(self) -> list[str]:
        """Run the due tasks of all logs, and return their names."""
        return list(self.call("run_tasks"))

    # --- logs ---

    def open(
        self,
        directory: Path,
        config: Mapping[str, str] | None = None,
        *,
        log_start_offset: int = 0,
        recovery_point: int = 0,
        clean_shutdown: bool = True,
        topic_id: str | None = None,
        producer_id_expiration_ms: int = 86_400_000,
        producer_id_expiration_check_interval_ms: int = 600_000,
        max_transaction_timeout_ms: int = 900_000,
        verify_transactions: bool = False,
    ) -> OracleLog:
        """Open (or create) a partition directory `topic-N` as LogManager does, with the values of the checkpoints.

        `config` has topic configs; `internal.segment.bytes` allows segments below Kafka's 1 MB minimum.
        """
        number = self.call(
            "open",
            directory=str(directory),
            config=dict(config or {}),
            log_start_offset=log_start_offset,
            recovery_point=recovery_point,
            clean_shutdown=clean_shutdown,
            topic_id=topic_id,
            producer_id_expiration_ms=producer_id_expiration_ms,
            producer_id_expiration_check_interval_ms=producer_id_expiration_check_interval_ms,
            max_transaction_timeout_ms=max_transaction_timeout_ms,
            verify_transactions=verify_transactions,
        )
        return OracleLog(self.call, number, directory)

    def connect(self, bootstrap: str) -> KafkaClient:
        """Return a Java client of a running broker."""
        return KafkaClient(self.call, self.call("client_connect", bootstrap=bootstrap))

    # --- record batches ---

    def build_batch(
        self,
        records: Iterable[OracleRecord],
        *,
        magic: int = 2,
        codec: Codec = "none",
        level: int | None = None,
        timestamp_type: TimestampType = "CreateTime",
        base_offset: int = 0,
        last_offset: int | None = None,
        log_append_time: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        control: bool = False,
        leader_epoch: int = -1,
        delete_horizon_ms: int = -1,
    ) -> bytes:
        """Return one batch (for magic 0 and 1: messages, or one wrapper) as MemoryRecordsBuilder writes it."""
        return from_base64(
            self.call(
                "build_batch",
                records=[record.encode() for record in records],
                magic=magic,
                codec=codec,
                level=level,
                timestamp_type=timestamp_type,
                base_offset=base_offset,
                last_offset=last_offset,
                log_append_time=log_append_time,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                transactional=transactional,
                control=control,
                leader_epoch=leader_epoch,
                delete_horizon_ms=delete_horizon_ms,
            )
        )

    def end_transaction_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int = 0,
        timestamp: int | None = None,
        base_offset: int = 0,
        leader_epoch: int = -1,
    ) -> bytes:
        return from_base64(
            self.call(
                "end_transaction_marker",
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                commit=commit,
                coordinator_epoch=coordinator_epoch,
                timestamp=timestamp,
                base_offset=base_offset,
                leader_epoch=leader_epoch,
            )
        )

    def leader_change(
        self, leader_id: int, voters: Sequence[int], *, timestamp: int | None = None, leader_epoch: int = 0
    ) -> bytes:
        return from_base64(
            self.call(
                "leader_change",
                leader_id=leader_id,
                voters=list(voters),
                timestamp=timestamp,
                leader_epoch=leader_epoch,
            )
        )

    def decode(self, records: bytes) -> list[OracleBatch]:
        """Return the complete batches in records, with all their records. An incomplete batch at the end is skipped."""
        return [OracleBatch.parse(batch) for batch in self.call("decode", records=to_base64(records))]

    def validate(
        self,
        records: bytes,
        *,
        first_offset: int = 0,
        source_codec: Codec | None = None,
        target_codec: Codec | None = None,
        level: int | None = None,
        compacted: bool = False,
        to_magic: int = 2,
        timestamp_type: TimestampType = "CreateTime",
        timestamp_before_max_ms: int | None = None,
        timestamp_after_max_ms: int | None = None,
        leader_epoch: int = 0,
        origin: Origin = "CLIENT",
    ) -> ValidationResult:
        """Check produced records with LogValidator and assign offsets. The source codec is that of the first batch."""
        answer = self.call(
            "validate",
            records=to_base64(records),
            first_offset=first_offset,
            source_codec=source_codec,
            target_codec=target_codec,
            level=level,
            compacted=compacted,
            to_magic=to_magic,
            timestamp_type=timestamp_type,
            timestamp_before_max_ms=timestamp_before_max_ms,
            timestamp_after_max_ms=timestamp_after_max_ms,
            leader_epoch=leader_epoch,
            origin=origin,
        )
        return ValidationResult(**{**answer, "records": from_base64(answer["records"])})

    def filter(
        self,
        records: bytes,
        *,
        drop_offsets: Iterable[int] = (),
        batch_retention: Mapping[int, str] | None = None,
        markers_of_empty_transactions: Iterable[int] = (),
        now_ms: int | None = None,
        delete_retention_ms: int = 0,
    ) -> FilterResult:
        """Run MemoryRecords.filterTo, the core of the cleaner.

        batch_retention: base offset → DELETE, RETAIN_EMPTY or DELETE_EMPTY (the default).
        """
        answer = self.call(
            "filter",
            records=to_base64(records),
            drop_offsets=list(drop_offsets),
            batch_retention={str(offset): verdict for offset, verdict in (batch_retention or {}).items()},
            markers_of_empty_transactions=list(markers_of_empty_transactions),
            now_ms=now_ms,
            delete_retention_ms=delete_retention_ms,
        )
        return FilterResult(**{**answer, "records": from_base64(answer["records"])})

    def compress(self, data: bytes, codec: Codec, *, magic: int = 2, level: int | None = None) -> bytes:
        return from_base64(self.call("compress", data=to_base64(data), codec=codec, magic=magic, level=level))

    def decompress(self, data: bytes, codec: Codec, *, magic: int = 2) -> bytes:
        return from_base64(self.call("decompress", data=to_base64(data), codec=codec, magic=magic))

    # --- small files ---

    def read_offset_checkpoint(self, file: Path) -> dict[tuple[str, int], int]:
        return {(topic, n): offset for topic, n, offset in self.call("read_offset_checkpoint", file=str(file))}

    def write_offset_checkpoint(self, file: Path, offsets: Mapping[tuple[str, int], int]) -> None:
        entries = [{"topic": topic, "partition": n, "offset": offset} for (topic, n), offset in offsets.items()]
        self.call("write_offset_checkpoint", file=str(file), offsets=entries)

    def read_leader_epochs(self, file: Path) -> list[tuple[int, int]]:
        return [(epoch, start) for epoch, start in self.call("read_leader_epochs", file=str(file))]

    def write_leader_epochs(self, file: Path, epochs: Iterable[tuple[int, int]]) -> None:
        entries = [{"epoch": epoch, "start_offset": start} for epoch, start in epochs]
        self.call("write_leader_epochs", file=str(file), epochs=entries)

    def read_partition_metadata(self, file: Path) -> str:
        """Return the topic id in a partition.metadata file."""
        return str(self.call("read_partition_metadata", file=str(file)))

    def read_clean_shutdown(self, directory: Path) -> int | None:
        """Return the broker epoch in the clean-shutdown marker of a log directory."""
        epoch = self.call("read_clean_shutdown", directory=str(directory))
        return None if epoch is None else int(epoch)

    def write_clean_shutdown(self, directory: Path, broker_epoch: int) -> None:
        self.call("write_clean_shutdown", directory=str(directory), broker_epoch=broker_epoch)

    def read_snapshot(self, file: Path) -> list[Producer]:
        return [Producer.parse(entry) for entry in self.call("read_snapshot", file=str(file))]

    def write_snapshot(self, file: Path, producers: Iterable[Producer]) -> None:
        entries = [
            {
                **{name: getattr(producer, name) for name in Producer.__slots__},
                "batches": [
                    {name: getattr(batch, name) for name in type(batch).__slots__} for batch in producer.batches
                ],
            }
            for producer in producers
        ]
        self.call("write_snapshot", file=str(file), producers=entries)

    # --- Kafka's tools, without a JVM for each ---

    def tool(self, main_class: str, *arguments: str) -> str:
        """Run a tool's main() inside the oracle, and return its output."""
        status, output = self.call("tool", **{"class": main_class, "arguments": list(arguments)})
        if status:
            raise AssertionError(f"{main_class} {' '.join(arguments)} ended with {status}:\n{output}\n{self.stderr()}")
        return str(output)

    def dump(self, *files: Path, options: Sequence[str] = ("--print-data-log", "--deep-iteration")) -> str:
        """Return the output of DumpLogSegments for files."""
        names = ",".join(map(str, files))
        return self.tool("org.apache.kafka.tools.DumpLogSegments", "--files", names, *options)

    def index_sanity_check(self, *files: Path) -> str:
        """Return the output of DumpLogSegments --index-sanity-check for .index and .timeindex files."""
        return self.dump(*files, options=("--index-sanity-check",))
