from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import tailrace, write_directory
from tests.support.golden import golden


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden("broker-clean").unpack(tmp_path_factory.mktemp("broker"))


def test_explain_shows_probes_walk_and_slice_of_a_read_by_offset(broker: Path) -> None:
    read = tailrace("log", "explain", broker, "--topic", "payments", "--offset", 14, "--json").json["read"]
    assert read["bounds"]["bound"] == 19
    walk = read["walks"][0]
    assert [(probe["slot"], probe["isAtOrBelow"]) for probe in walk["search"]["probes"]] == [(0, True), (1, False)]
    assert [batch["position"] for batch in walk["walked"]] == [310, 406]
    assert (read["slice"]["position"], read["slice"]["size"], read["slice"]["endsWith"]) == (406, 328, "bound")
    assert read["aborted"] is None
    assert read["cost"]["indexProbes"] == 2


def test_explain_with_read_committed_lists_aborted_transactions(broker: Path) -> None:
    arguments = ["log", "explain", broker / "payments-0", "--offset", 7, "--isolation", "read_committed"]
    read = tailrace(*arguments, "--json").json["read"]
    assert (read["bounds"]["lastStableOffset"], read["bounds"]["bound"]) == (13, 13)
    assert read["aborted"] == [{"producerId": 2, "firstOffset": 6, "lastOffset": 10, "lastStableOffset": 11}]
    lines = tailrace(*arguments).lines
    assert any("from 00000000000000000005.txnindex" in line for line in lines)


def test_explain_by_timestamp_shows_the_lookup_and_the_read(broker: Path) -> None:
    document = tailrace("log", "explain", broker / "orders-0", "--timestamp", 1_700_000_002_500, "--json").json
    assert document["lookup"]["found"]["offset"] == document["read"]["offset"]
    assert document["lookup"]["found"]["timestamp"] >= 1_700_000_002_500
    late = tailrace("log", "explain", broker / "orders-0", "--timestamp", "2030-01-01")
    assert late.status == 0
    assert any("no record is at or after that time" in line for line in late.lines)


def test_explain_as_text_shows_the_steps_in_order(broker: Path) -> None:
    lines = tailrace("log", "explain", broker / "payments-0", "--offset", 14).lines
    steps = [line.split()[1] for line in lines if line[:4].strip().isdigit() and line.startswith(" ")]
    assert [step for step in steps if step[0].isupper()] == ["Bounds", "Segment", "Offset", "Walk", "Slice", "Cost"]
    assert any("█" in line for line in lines)


def test_explain_of_an_offset_without_records_has_status_0(broker: Path) -> None:
    for offset in (19, 20, 1000):
        ran = tailrace("log", "explain", broker / "payments-0", "--offset", offset)
        assert ran.status == 0
        assert "Nothing" in ran.out


def test_explain_without_a_partition_is_refused_if_several_match(broker: Path) -> None:
    ran = tailrace("log", "explain", broker, "--offset", 1)
    assert ran.status == 2
    assert "name one with --topic and --partition" in ran.err


def test_a_failing_read_reports_file_and_position(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain") / "plain-0"
    log = min(path.glob("*.log"))
    data = bytearray(log.read_bytes())
    data[8:12] = b"\xff\xff\xff\xff"
    log.write_bytes(data)
    ran = tailrace("log", "explain", path, "--offset", 0)
    assert ran.status == 1
    assert f"the read fails: {log} at position 0" in ran.err


def test_explain_notes_a_missing_high_watermark(tmp_path: Path) -> None:
    path = golden("codecs").unpack(tmp_path)
    assert "the log end is used instead" in tailrace("log", "explain", path, "--offset", 3).lines[-1]
