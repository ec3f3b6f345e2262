from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import tailrace, write_directory
from tests.support.golden import golden, golden_names


def decoded(record: dict[str, Any]) -> list[Any]:
    """Return a JSON line in the form of the golden manifests."""

    def data(fields: dict[str, Any], name: str) -> str | None:
        text = fields[name]
        if text is None or fields.get(f"{name}Encoding") == "base64":
            return text
        return base64.b64encode(text.encode()).decode()

    headers = [[base64.b64encode(h["key"].encode()).decode(), data(h, "value")] for h in record["headers"]]
    return [record["offset"], record["timestamp"], data(record, "key"), data(record, "value"), headers]


@pytest.mark.parametrize("name", golden_names("data_dir"))
def test_cat_prints_the_records_that_the_java_consumer_read(name: str, tmp_path: Path) -> None:
    path = golden(name).unpack(tmp_path)
    for expected in golden(name).manifest["partitions"]:
        chosen = ["--topic", expected["topic"], "--partition", expected["partition"], "--json"]
        ran = tailrace("log", "cat", path, *chosen)
        assert (ran.status, ran.err) == (0, "")
        assert [decoded(record) for record in ran.json_lines] == expected["records"]
        ran = tailrace("log", "cat", path, *chosen, "--isolation", "read_committed")
        committed = [record for record in expected["records"] if record[0] in expected["committed"]]
        assert [decoded(record) for record in ran.json_lines] == committed


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden("broker-clean").unpack(tmp_path_factory.mktemp("broker"))


def offsets(*arguments: object) -> list[int]:
    return [record["offset"] for record in tailrace("log", "cat", *arguments, "--json").json_lines]


def test_json_has_the_partition_only_for_several_partitions_or_with_more(broker: Path) -> None:
    one = tailrace("log", "cat", broker / "audit-0", "--json", "--max", 1).json_lines
    assert list(one[0]) == ["offset", "timestamp", "key", "value", "headers"]
    many = tailrace("log", "cat", broker, "--topic", "orders", "--json").json_lines
    assert {(record["topic"], record["partition"]) for record in many} == {("orders", 0), ("orders", 1)}
    more = tailrace("log", "cat", broker / "payments-0", "--json", "--more", "--max", 1).json_lines[0]
    assert (more["topic"], more["partition"], more["timestampType"]) == ("payments", 0, "CreateTime")
    assert (more["leaderEpoch"], more["producerId"], more["producerEpoch"], more["sequence"]) == (0, 1, 0, 0)


def test_text_output_has_one_line_per_record(broker: Path) -> None:
    lines = tailrace("log", "cat", broker / "payments-0", "--max", 5).lines
    assert lines[3] == "payments-0\t3\t2023-11-14 22:13:19.950\tkey-3\tvalue-3\ttrace=3 none=null"
    assert lines[4].split("\t")[3] == "null"


def test_cat_prints_the_offset_range_up_to_the_maximum(broker: Path) -> None:
    assert offsets(broker / "orders-0", "--from-offset", 5, "--to-offset", 9) == [5, 6, 7, 8]
    assert offsets(broker / "orders-0", "--from-offset", 5, "--max", 2) == [5, 6]
    assert offsets(broker / "audit-0", "--from-offset", 0, "--max", 1) == [22]
    assert offsets(broker / "orders-0", "--from-offset", 10_000) == []
    assert len(offsets(broker, "--max", 7)) == 7


def test_cat_prints_the_records_of_a_time_range(broker: Path) -> None:
    everything = tailrace("log", "cat", broker / "orders-0", "--json").json_lines
    start, end = "2023-11-14T22:13:22Z", 1_700_000_005_000
    expected = [r["offset"] for r in everything if 1_700_000_002_000 <= r["timestamp"] < end]
    assert offsets(broker / "orders-0", "--from-timestamp", start, "--to-timestamp", end) == expected


def test_cat_prints_records_that_match_key_pattern_and_header(broker: Path) -> None:
    everything = tailrace("log", "cat", broker / "orders-0", "--json").json_lines
    assert offsets(broker / "orders-0", "--key", "key-3") == [r["offset"] for r in everything if r["key"] == "key-3"]
    assert offsets(broker / "orders-0", "--grep", r"e-1\d$") == [
        r["offset"] for r in everything if r["value"][-3:-1] == "-1"
    ]
    with_trace = [r["offset"] for r in everything if any(h["key"] == "trace" for h in r["headers"])]
    assert offsets(broker / "orders-0", "--header", "trace") == with_trace
    assert offsets(broker / "orders-0", "--header", "trace=15") == [9]
    assert offsets(broker / "orders-0", "--header", "trace=15", "--key", "nobody") == []
    ran = tailrace("log", "cat", broker, "--grep", "(")
    assert (ran.status, ran.out) == (2, "")
    assert "is not a regular expression" in ran.err


def test_cat_prints_keys_in_hex_and_base64(broker: Path) -> None:
    arguments = ["log", "cat", broker / "orders-0", "--json", "--max", 1, "--encoding"]
    assert tailrace(*arguments, "hex").json_lines[0]["key"] == b"key-0".hex()
    assert tailrace(*arguments, "base64").json_lines[0]["key"] == base64.b64encode(b"key-0").decode()


def test_cat_reports_a_damaged_batch_and_prints_the_others(tmp_path: Path) -> None:
    path = golden("crashed-bad-crc").unpack(tmp_path)
    ran = tailrace("log", "cat", path, "--json")
    assert ran.status == 1
    assert [record["offset"] for record in ran.json_lines][:5] == [0, 1, 2, 5, 6]
    assert ran.json_lines[-1]["offset"] == 98
    assert "00000000000000000000.log at position 160" in ran.err


def test_cat_prints_the_other_partitions_if_one_cannot_be_opened(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain", "idempotent")
    log = max((path / "idempotent-0").glob("*.log"))
    log.unlink()
    log.symlink_to(log)
    ran = tailrace("log", "cat", path, "--json")
    assert ran.status == 1
    assert "idempotent-0" in ran.err
    assert {record["topic"] for record in ran.json_lines} == {"plain"}
