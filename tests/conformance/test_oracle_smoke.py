"""The oracle and the Kafka broker, with which other tests compare, work as documented."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.support.kafka_broker import KafkaBroker
from tests.support.log_oracle import START_MS, LogOracle
from tests.support.oracle_log import EARLIEST, LATEST, MAX_TIMESTAMP
from tests.support.oracle_types import Codec, OracleError, OracleRecord, TimestampOffset

pytestmark = pytest.mark.kafka

SMALL = {"internal.segment.bytes": "400", "segment.index.bytes": "1000", "index.interval.bytes": "100"}


def record(number: int, timestamp: int | None = None) -> OracleRecord:
    return OracleRecord(
        key=b"key-%d" % (number % 3),
        value=b"value-%d" % number,
        timestamp=START_MS + number if timestamp is None else timestamp,
    )


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_log_is_written_rolled_read_and_reopened(log_oracle: LogOracle, tmp_path: Path) -> None:
    log = log_oracle.open(tmp_path / "topic-0", SMALL)
    for number in range(10):
        appended = log.append_as_leader(log_oracle.build_batch([record(number)]), leader_epoch=3)
        assert (appended.first_offset, appended.last_offset) == (number, number)
    log.set_high_watermark(8)
    state = log.state()
    assert (state.log_end_offset, state.high_watermark, state.leader_epochs) == (10, 8, [(3, 0)])
    assert state.segments == [0, 5]
    read = log.read(5, isolation="HIGH_WATERMARK")
    assert [b.base_offset for b in log_oracle.decode(read.records)] == [5, 6, 7]
    assert read.position.segment_base_offset == 5
    log.shut_down()
    reopened = log_oracle.open(tmp_path / "topic-0", SMALL, recovery_point=10)
    assert reopened.state().log_end_offset == 10
    assert [s.size for s in reopened.segments()] == [
        (tmp_path / "topic-0" / f"{base:020}.log").stat().st_size for base in (0, 5)
    ]


def test_a_crash_leaves_indexes_at_full_size_and_no_snapshot(log_oracle: LogOracle, tmp_path: Path) -> None:
    log = log_oracle.open(tmp_path / "topic-0", SMALL)
    log.append_as_leader(log_oracle.build_batch([record(0)]))
    log.crash()
    assert (
        names(tmp_path / "topic-0")
        == [
            "00000000000000000000.index",
            "00000000000000000000.log",
            "00000000000000000000.timeindex",
            "leader-epoch-checkpoint",
            "partition.metadata",
        ][:4]
    )
    assert (tmp_path / "topic-0" / "00000000000000000000.index").stat().st_size == 1000
    with pytest.raises(OracleError, match="no open log"):
        log.state()


def test_offsets_are_found_by_time(log_oracle: LogOracle, tmp_path: Path) -> None:
    log = log_oracle.open(tmp_path / "topic-0")
    log.append_as_leader(log_oracle.build_batch([record(0, 50), record(1, 70), record(2, 60)], codec="lz4"))
    log.set_high_watermark(3)
    assert log.offsets_by_timestamp([50, 51, 71, EARLIEST, LATEST, MAX_TIMESTAMP]) == [
        TimestampOffset(50, 0, 0),
        TimestampOffset(70, 1, 0),
        None,
        TimestampOffset(-1, 0, 0),
        TimestampOffset(-1, 3, 0),
        TimestampOffset(70, 1, 0),
    ]


def test_an_open_transaction_bounds_the_last_stable_offset(log_oracle: LogOracle, tmp_path: Path) -> None:
    log = log_oracle.open(tmp_path / "topic-0")
    settings: Any = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    log.append_as_leader(log_oracle.build_batch([record(0)]))
    log.append_as_leader(log_oracle.build_batch([record(1)], base_sequence=0, **settings))
    log.set_high_watermark(2)
    assert log.state().last_stable_offset == 1
    assert log.producers().ongoing == [(7, 1, None)]
    log.append_as_leader(log_oracle.end_transaction_marker(7, 0, commit=False), origin="COORDINATOR")
    log.set_high_watermark(3)
    read = log.read(0, isolation="TXN_COMMITTED")
    assert read.aborted_transactions == [(7, 1)]
    with pytest.raises(OracleError, match="Out of order sequence number") as refused:
        log.append_as_leader(log_oracle.build_batch([record(2)], base_sequence=5, **settings))
    assert refused.value.code == "OUT_OF_ORDER_SEQUENCE_NUMBER"


def test_compaction_and_delayed_deletion_run_on_the_manual_clock(log_oracle: LogOracle, tmp_path: Path) -> None:
    log = log_oracle.open(tmp_path / "topic-0", {**SMALL, "cleanup.policy": "compact"})
    for number in range(12):
        log.append_as_leader(log_oracle.build_batch([record(number)]))
    log.set_high_watermark(12)
    cleaned = log.clean()
    assert (cleaned.from_offset, cleaned.to_offset) == (0, 10)
    assert (cleaned.messages_read, cleaned.messages_written) == (10, 3)
    assert any(name.endswith(".deleted") for name in names(tmp_path / "topic-0"))
    log_oracle.advance(60_000)
    assert not any(name.endswith(".deleted") for name in names(tmp_path / "topic-0"))


def test_the_clock_is_reset_between_tests(log_oracle: LogOracle) -> None:
    assert log_oracle.now_ms == START_MS


# zstd came with message format v2.
@pytest.mark.parametrize(
    ("magic", "codec"),
    [(magic, codec) for magic in (0, 1, 2) for codec in get_args(Codec) if codec != "zstd" or magic == 2],
)
def test_batches_are_built_and_decoded(log_oracle: LogOracle, magic: int, codec: Codec) -> None:
    records = [record(0), record(1)]
    (*_, last) = batches = log_oracle.decode(log_oracle.build_batch(records, magic=magic, codec=codec, base_offset=40))
    assert last.valid
    assert (last.magic, last.codec, last.last_offset) == (magic, codec, 41)
    assert [r.value for batch in batches for r in batch.records] == [b"value-0", b"value-1"]


def test_dump_runs_inside_the_oracle(log_oracle: LogOracle, tmp_path: Path) -> None:
    log = log_oracle.open(tmp_path / "topic-0", SMALL)
    for number in range(3):
        log.append_as_leader(log_oracle.build_batch([record(number)]))
    log.close()
    assert "payload: value-2" in log_oracle.dump(tmp_path / "topic-0" / "00000000000000000000.log")
    assert "passed sanity check" in log_oracle.index_sanity_check(tmp_path / "topic-0" / "00000000000000000000.index")


def test_a_real_broker_serves_all_records_after_a_crash(
    kafka_broker: Callable[..., KafkaBroker], log_oracle: LogOracle
) -> None:
    broker = kafka_broker()
    broker.start()
    with log_oracle.connect(broker.bootstrap) as client:
        client.create_topic("orders")
        assert client.produce("orders", 0, [record(0), record(1)], config={"compression.type": "zstd"}) == [[0, 1]]
        assert broker.produce("orders", 0, log_oracle.build_batch([record(2)])) == 2
        client.transaction("t", "orders", 0, [record(3)], end="abort")
        client.transaction("t", "orders", 0, [record(4)], end="open")
    broker.crash()
    assert not (broker.data / ".kafka_cleanshutdown").exists()
    broker.start()
    with log_oracle.connect(broker.bootstrap) as client:
        assert [r.value for r in client.consume("orders", 0)] == [b"value-%d" % number for number in range(5)]
        committed = client.consume("orders", 0, isolation="read_committed")
        assert [(r.offset, r.value) for r in committed] == [(0, b"value-0"), (1, b"value-1"), (2, b"value-2")]
        assert client.bounds("orders", 0, isolation="read_committed") == (0, 5)
        assert client.offset_for_time("orders", 0, START_MS + 1) == TimestampOffset(START_MS + 1, 1, 0)
    broker.stop()
    assert log_oracle.read_clean_shutdown(broker.data) is not None
