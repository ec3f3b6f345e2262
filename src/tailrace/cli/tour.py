"""`tailrace tour`: a guided tour of the log. It writes a small topic and inspects it with the `tailrace log` commands.

The tour uses fixed times, so that offsets, times and sizes are the same in every run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import uuid
from textwrap import dedent, indent

from tailrace.cli.errors import CommandError
from tailrace.cli.log.explain_text import read_text, timestamp_text
from tailrace.cli.log.ls import segment_table
from tailrace.cli.output import count_text, print_lines, size_text, table, time_text
from tailrace.log.directories.data_directory import read_data_directory
from tailrace.log.directories.log_directory import LogDirectory
from tailrace.log.disk.files import DiskFiles, join
from tailrace.log.inspect.explain import explain_offset, explain_timestamp
from tailrace.log.inspect.offline import open_exact
from tailrace.log.inspect.offline_records import RecordReader, Selection
from tailrace.log.inspect.survey import survey
from tailrace.log.inspect.verify import verify_partition
from tailrace.log.partition_log import PartitionLog
from tailrace.log.watermarks import Isolation
from tailrace.model.ids import TopicId, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.records.batch import Codec
from tailrace.records.builder import BatchBuilder
from tailrace.records.checks.validation import Origin
from tailrace.records.control_records import ControlType, EndTransactionMarker, build_end_marker

_START_MS = 1_769_850_000_000  # 2026-01-31 09:00 UTC
_BATCHES = 400
_RECORDS_PER_BATCH = 25
_ORDERS = TopicPartition("orders", 0)
_PRODUCER = 7
_STEP_MS = 1000


def run(options: argparse.Namespace) -> int:
    path = _directory(options.directory)
    _title("1  Write a topic")
    _explain(
        f"""
        A partition is a folder, `{_ORDERS}`. Its log is a sequence of segment files. Producers send batches; the log
        assigns the next offset to each record and appends the batch. In this tour a new segment starts after 256 KB (a
        broker's default is 1 GB).
        """
    )
    _write_topic(path)
    _show_segments(path)
    offline = open_exact(DiskFiles(), read_data_directory(DiskFiles(), path).folders[0], _now_ms())
    log = offline.log
    _show_lookups(log)
    _show_transactions(log)
    _show_files(path)
    log.abandon()
    _show_next_steps(path)
    return 0


def _now_ms() -> int:
    return _START_MS + _BATCHES * _RECORDS_PER_BATCH * _STEP_MS


def _directory(wanted: str | None) -> str:
    if wanted is None:
        return tempfile.mkdtemp(prefix="tailrace-tour-")
    if os.path.isdir(wanted) and os.listdir(wanted):
        raise CommandError(f"{wanted} is not empty: give the tour an empty or new directory")
    if os.path.exists(wanted) and not os.path.isdir(wanted):
        raise CommandError(f"{wanted} is not a directory: give the tour an empty or new directory")
    return os.path.normpath(wanted)


def _title(text: str) -> None:
    print_lines("", text, "─" * len(text))


def _explain(text: str) -> None:
    print_lines(dedent(text).strip(), "")


def _show(lines: list[str]) -> None:
    print_lines(indent("\n".join(lines), "  "))


# 1


def _write_topic(path: str) -> None:
    directory = LogDirectory(DiskFiles(), path, new_id=lambda: uuid.uuid4().hex)
    config = TopicConfig(internal_segment_bytes=256 * 1024)
    log = directory.create(_ORDERS, config, _START_MS, TopicId(uuid.UUID(int=0x7461_696C_7261_6365)))
    sent = written = 0
    for number in range(_BATCHES):
        now = _START_MS + (number + 1) * _RECORDS_PER_BATCH * _STEP_MS
        batch = _orders(number)
        result = log.append_as_leader(bytearray(batch.build()), leader_epoch=0, now_ms=now)
        sent += result.last_offset - result.first_offset + 1
        written += batch.uncompressed_size
        if number in (100, 250):
            _write_transaction(log, now, commit=number == 250)
        log.advance_high_watermark(log.log_end_offset)
        log.run_due(now)
    print_lines(
        f"  {count_text(sent, 'record')} in {count_text(_BATCHES, 'batch', 'batches')}, every other one compressed "
        f"with zstd: {size_text(written)} became {size_text(log.size)} on disk"
    )
    directory.close(_now_ms())


def _orders(number: int) -> BatchBuilder:
    """Build a batch of orders, one per second; every other batch is compressed."""
    builder = BatchBuilder(codec=Codec.ZSTD if number % 2 else Codec.NONE)
    for n in range(number * _RECORDS_PER_BATCH, (number + 1) * _RECORDS_PER_BATCH):
        value = f'{{"order":{n},"customer":"customer-{n * 7919 % 997}","cents":{n * 104729 % 99991},"state":"new"}}'
        headers = [("trace", f"{n:08x}".encode())] if n % 100 == 0 else []
        builder.append(_START_MS + n * _STEP_MS, f"customer-{n * 7919 % 997}".encode(), value.encode(), headers)
    return builder


def _write_transaction(log: PartitionLog, now: int, *, commit: bool) -> None:
    epoch = 1 if commit else 0
    builder = BatchBuilder(producer_id=_PRODUCER, producer_epoch=epoch, base_sequence=0, transactional=True)
    for n in range(10):
        builder.append(now, b"refund", f"refund {n}, {'committed' if commit else 'aborted'}".encode())
    log.append_as_leader(bytearray(builder.build()), leader_epoch=0, now_ms=now)
    marker = EndTransactionMarker(ControlType.COMMIT if commit else ControlType.ABORT, 0)
    data = build_end_marker(marker, timestamp=now, producer_id=_PRODUCER, producer_epoch=epoch)
    log.append_as_leader(bytearray(data), leader_epoch=0, now_ms=now, origin=Origin.COORDINATOR)


# 2


def _show_segments(path: str) -> None:
    _title("2  Segments")
    _explain(
        """
        The name of a segment is its first offset. It has two sparse indexes, offset → position and time → offset, with
        one entry per 4 KB or so. `tailrace log ls --segments` shows:
        """
    )
    files = DiskFiles()
    _show(segment_table([survey(files, folder, _now_ms()) for folder in read_data_directory(files, path).folders]))


# 3 and 4


def _show_lookups(log: PartitionLog) -> None:
    offset = 7777
    _title(f"3  Read from offset {offset}")
    _explain(
        """
        A read does not search the data. The broker finds the segment in memory, looks up a nearby position in the
        segment's index, and scans batch headers from there to the batch. The result is a slice of the file, which the
        broker sends to the socket without reading it.
        """
    )
    _show(read_text(explain_offset(log, offset, 64 * 1024, Isolation.READ_UNCOMMITTED)))
    moment = _START_MS + 4_321_500
    _title(f"4  Find the first record at {time_text(moment)}")
    _explain("Timestamps may be out of order, so an index entry has the largest timestamp up to its offset.")
    _show(timestamp_text(explain_timestamp(log, moment)))


# 5


def _show_transactions(log: PartitionLog) -> None:
    _title("5  Transactions")
    _explain(
        """
        Two transactions wrote ten refunds each; one was aborted. Its records stay in the log. The transaction index
        lists aborted transactions, so that consumers with read_committed can skip their records.
        """
    )
    aborted = log.segments.aborted_transactions(0, 0, log.log_end_offset)
    rows = [[entry.producer_id, entry.first_offset, entry.last_offset] for entry in aborted]
    _show(table(["aborted: producer", "first offset", "last offset"], rows))


# 6


def _show_files(path: str) -> None:
    _title("6  Files")
    _explain("All files have Apache Kafka's formats, byte for byte: a Kafka broker can use the directory.")
    folder = join(path, str(_ORDERS))
    rows = [
        [name if parent == path else join(str(_ORDERS), name), size_text(os.path.getsize(join(parent, name)))]
        for parent in (path, folder)
        for name in sorted(os.listdir(parent))
        if os.path.isfile(join(parent, name)) and name != ".lock"
    ]
    _show(table(["<FILE", "SIZE"], rows))
    files = DiskFiles()
    result = verify_partition(files, read_data_directory(files, path).folders[0], deep=True)
    problems = count_text(len(result.problems), "problem") if result.problems else "no problems"
    print_lines("", f"  `tailrace log verify` read {count_text(result.batches, 'batch', 'batches')}: {problems}.")
    offline = open_exact(files, read_data_directory(files, path).folders[0], _now_ms())
    counts = {
        isolation: sum(1 for _ in RecordReader(offline, Selection(isolation=isolation), lambda finding: None))
        for isolation in (Isolation.READ_UNCOMMITTED, Isolation.READ_COMMITTED)
    }
    offline.log.abandon()
    print_lines(
        f"  `tailrace log cat` reads {counts[Isolation.READ_UNCOMMITTED]:,} records, "
        f"{counts[Isolation.READ_COMMITTED]:,} of them committed."
    )


def _show_next_steps(path: str) -> None:
    _title("Try next")
    program = "tailrace" if shutil.which("tailrace") else os.path.relpath(sys.argv[0])
    print_lines(
        f"  {program} log ls {path}",
        f"  {program} log cat {path} --topic orders --from-offset 2520 --max 20 --json",
        f"  {program} log cat {path} --topic orders --key refund --isolation read_committed",
        f"  {program} log explain {path} --topic orders --offset 2530 --isolation read_committed",
        f"  {program} log dump {path} --only txnindex",
        f"  {program} log verify {path} --deep",
        "",
        f"The files are kept in {path}. Remove the directory when you no longer need it.",
    )
