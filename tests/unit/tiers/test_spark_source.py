"""The Spark source on remote segments without a cluster, in a folder and in a bucket."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.log.disk.files import DiskFiles
from tailrace.model.ids import TopicPartition
from tailrace.spark.source.errors import UnknownLog, WrongOption
from tailrace.spark.source.planning.offset_ranges import OffsetRange
from tailrace.spark.source.transports.tier_transport import split_range
from tests.support.s3_server import S3Server
from tests.support.source_rows import offsets, plan, read
from tests.support.tier_makers import LAYOUTS, small_log
from tests.support.tiered_logs import copy_log

FILES = DiskFiles()
ORDERS = TopicPartition("orders", 0)


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_rows_are_those_of_the_log(tmp_path: Path, layout: str, isolation: str, s3: S3Server) -> None:
    log = small_log(tmp_path / "data" / "topic-0")
    copy_log(LAYOUTS[layout](str(tmp_path / "tier")), log, FILES, str(tmp_path / "data" / "topic-0"))
    log.close()
    wanted = {"subscribe": "topic", "kafka.isolation.level": isolation}
    expected = read({"path": str(tmp_path / "data"), **wanted})
    assert len(expected) == (90 if isolation == "read_committed" else 91)
    local = {"remote.path": str(tmp_path / "tier"), **wanted}
    assert read(local) == expected
    assert len(plan({**local, "minPartitions": "3"})) >= 3
    address = s3.upload(
        tmp_path / "tier", f"tier-{layout.replace(' ', '-')}-{isolation.replace('_', '-')}", "some/tier"
    )
    assert read({"remote.path": address, **s3.options, **wanted}) == expected
    some = {"startingOffsets": '{"topic": {"0": 25}}', "endingOffsets": '{"topic": {"0": 40}}'}
    assert offsets(read({"remote.path": address, **s3.options, **wanted, **some})) == list(range(25, 40))


def test_both_kinds_of_path_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongOption, match=r"path and remote\.path cannot both be set"):
        read({"path": str(tmp_path), "remote.path": str(tmp_path), "subscribe": "topic"})


def test_a_folder_without_segments_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnknownLog, match="has no remote segments"):
        read({"remote.path": str(tmp_path), "subscribe": "topic"})


def test_a_range_is_split_between_the_store_and_the_cluster() -> None:
    def split(*stored: tuple[int, int]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        cold, warm = split_range(OffsetRange(ORDERS, 10, 100), stored)
        return [(one.start, one.end) for one in cold], [(one.start, one.end) for one in warm]

    assert split() == ([], [(10, 100)])
    assert split((0, 50), (50, 80)) == ([(10, 80)], [(80, 100)])
    assert split((20, 50), (60, 200)) == ([(20, 50), (60, 100)], [(10, 20), (50, 60)])
    assert split((0, 10), (100, 120)) == ([], [(10, 100)])
