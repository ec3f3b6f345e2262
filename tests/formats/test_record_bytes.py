"""Records, codecs and control batches give the bytes that Apache Kafka gave; runs without Java.

The files under data/records are made by scripts/make_record_goldens.py.
"""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

from tailrace.records.batch import Codec, RecordBatch, split_batches
from tailrace.records.builder import BatchBuilder
from tailrace.records.codecs.compression import compress
from tailrace.records.codecs.decompression import decompress
from tailrace.records.control_records import (
    ControlType,
    EndTransactionMarker,
    LeaderChange,
    build_control_batch,
    build_end_marker,
    end_marker,
    parse_control,
)
from tailrace.records.legacy import build_messages, iter_messages
from tailrace.records.record import Record, TimestampType, iter_records
from tests.formats.record_cases import DATA, START_MS, batch_cases, codec_cases, rows, sample
from tests.support.zstd_version import HAS_KAFKAS_ZSTD, REASON

TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}


def golden(name: str) -> list[dict]:
    return json.loads((DATA / name).read_text())["cases"]


def short(case: dict) -> str:
    return " ".join(str(value) for name, value in case.items() if name not in ("bytes", "sha256", "length", "marker"))


def test_the_stored_files_contain_every_case():
    answers = ("bytes", "sha256", "length")
    for name, cases in (("codecs.json", codec_cases()), ("batches.json", batch_cases())):
        assert [{k: v for k, v in case.items() if k not in answers} for case in golden(name)] == cases


@pytest.mark.parametrize("case", golden("codecs.json"), ids=short)
def test_compressed_bytes_equal_kafkas(case):
    codec = Codec[case["codec"].upper()]
    if codec == Codec.ZSTD and not HAS_KAFKAS_ZSTD:
        pytest.skip(REASON)
    data = sample(case["kind"], case["size"])
    packed = compress(codec, data, case["level"], magic=case["magic"])
    if "bytes" in case:
        assert packed.hex() == case["bytes"]
    assert (len(packed), hashlib.sha256(packed).hexdigest()) == (case["length"], case["sha256"])
    assert decompress(codec, packed, case["magic"]) == data


@pytest.mark.parametrize("case", golden("batches.json"), ids=short)
def test_built_batches_have_kafkas_bytes_and_are_read_back(case):
    codec = Codec[case["codec"].upper()]
    kind = TYPES[case["timestamp_type"]]
    magic = case["magic"]
    wanted = base64.b64decode(case["bytes"])
    inputs = rows(case["base_offset"], headers=magic == 2, gaps=case.get("gaps", False))
    if magic < 2:
        records = [Record(offset, timestamp, kind, key, value) for timestamp, key, value, _, offset in inputs]
        options = {"magic": magic, "codec": codec, "timestamp_type": kind, "log_append_time_ms": START_MS}
        built, read = build_messages(records, **options), list(iter_messages(wanted))
    else:
        same_names = ("base_offset", "producer_id", "producer_epoch", "base_sequence", "transactional", "leader_epoch")
        builder = BatchBuilder(
            codec=codec,
            timestamp_type=kind,
            log_append_time_ms=START_MS,
            delete_horizon_ms=case.get("delete_horizon_ms"),
            **{name: case[name] for name in same_names if name in case},
        )
        for timestamp, key, value, headers, offset in inputs:
            builder.append(timestamp, key, value, headers, offset=offset)
        built = builder.build(last_offset=case.get("last_offset"))
        (batch,) = split_batches(wanted)
        batch.check()
        read = list(iter_records(batch))
    assert built.hex() == wanted.hex()
    assert [(record.offset, record.key, record.value, tuple(record.headers)) for record in read] == [
        (offset, key, value, headers) for _, key, value, headers, offset in inputs
    ]
    if kind == TimestampType.LOG_APPEND_TIME and magic > 0:
        assert {record.timestamp for record in read} == {START_MS}
    else:
        assert [record.timestamp for record in read] == [row[0] if magic else -1 for row in inputs]


@pytest.mark.parametrize("case", golden("control.json"), ids=short)
def test_control_batches(case):
    wanted = bytes.fromhex(case["bytes"])
    batch = RecordBatch(memoryview(wanted))
    batch.check()
    if "marker" in case:
        kind = ControlType.COMMIT if case["commit"] else ControlType.ABORT
        marker = EndTransactionMarker(kind, case["coordinator_epoch"])
        assert build_end_marker(marker, **case["marker"]).hex() == wanted.hex()
        assert end_marker(batch) == marker
    else:
        voters = tuple(case["voters"])
        change = LeaderChange(0, case["leader_id"], voters, voters)
        built = build_control_batch(change, timestamp=START_MS, leader_epoch=case["leader_epoch"])
        assert built.hex() == wanted.hex()
        assert [parse_control(record) for record in iter_records(batch)] == [change]
