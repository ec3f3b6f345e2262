"""Indexes rebuilt by many tasks are equal to those of log recovery."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tailrace.log.disk import file_names
from tailrace.log.disk.files import DiskFiles
from tailrace.log.recovery.recovery import open_log
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.verify.reindex import INDEX_KINDS, reindex
from tests.support.command import SMALL, contents, write_directory
from tests.support.damaged_logs import all_logs
from tests.support.inline_spark import InlineSpark

KINDS = (file_names.OFFSET_INDEX, file_names.TIME_INDEX, file_names.TRANSACTION_INDEX)
BROKEN = {"crashed-bad-crc", "offset-overflow"}


def indexes(path: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(path).items() if name.endswith(KINDS)}


def sealed_of(folder: Path) -> list[str]:
    return sorted(log.name[:20] for log in folder.glob("*.log"))[:-1]


def recovered(folder: Path) -> None:
    """Rebuild the indexes of sealed segments by opening the log."""
    for base in sealed_of(folder):
        for kind in INDEX_KINDS:
            (folder / f"{base}{kind}").unlink(missing_ok=True)
    last = max(int(log.name[:20]) for log in folder.glob("*.log"))
    log = open_log(DiskFiles(), str(folder), parse_topic_config(SMALL), now_ms=1, recovery_point=last)
    log.abandon()


def test_reindex_writes_the_bytes_of_recovery(tmp_path: Path) -> None:
    path = all_logs(tmp_path / "data")
    topics = [
        folder.name.rpartition("-")[0] for folder in path.iterdir() if folder.is_dir() and "-delete" not in folder.name
    ]
    topics = [topic for topic in topics if topic not in BROKEN]
    before = contents(path)
    out = tmp_path / "out"
    found = reindex(
        InlineSpark(),
        str(path),
        topics=topics,
        configs=dict.fromkeys(topics, SMALL),
        output=str(out),
        task_bytes=9_000,
    )
    assert contents(path) == before
    made = 0
    for folder in sorted(path.iterdir()):
        if not folder.is_dir() or folder.name.rpartition("-")[0] not in topics:
            continue
        twin = tmp_path / "twin" / folder.name
        shutil.copytree(folder, twin)
        recovered(twin)
        for base in sealed_of(folder):
            for kind in INDEX_KINDS:
                new, theirs = out / folder.name / f"{base}{kind}", twin / f"{base}{kind}"
                assert new.exists() == theirs.exists(), new
                if new.exists():
                    assert new.read_bytes() == theirs.read_bytes(), new
                    made += 1
    assert found.segments > 20
    assert made == sum(index.new_path is not None for index in found.indexes) > 40


def test_indexes_are_replaced_only_without_a_running_broker(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "transactions", "plain")
    right = contents(path)
    configs = {"transactions": SMALL, "plain": SMALL}
    spoiled = [file for file in path.glob("*/*.*index") if file.name[:20] in sealed_of(file.parent)]
    for number, file in enumerate(sorted(spoiled)):
        if number % 2:
            file.write_bytes(bytes(24))
        else:
            file.unlink()
    lock = DiskFiles().lock(str(path / ".lock"))
    with pytest.raises(JobError, match=r"is in use: a broker holds its \.lock"):
        reindex(InlineSpark(), str(path), configs=configs)
    lock.close()
    found = reindex(InlineSpark(), str(path), configs=configs)
    assert {index.path for index in found.changed} >= {str(file) for file in spoiled}
    after = contents(path)
    assert set(after) == set(right)
    assert {name for name in after if after[name] != right[name]} == set()


def test_a_damaged_log_ends_reindex_in_one_sentence_without_writes(tmp_path: Path) -> None:
    path = write_directory(tmp_path / "data", "plain")
    log = min((path / "plain-0").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[100] ^= 0xFF
    log.write_bytes(data)
    before = contents(path)
    with pytest.raises(JobError, match=r"plain-0 is damaged at offset 0 or after it: .*position \d+") as error:
        reindex(InlineSpark(), str(path))
    assert error.value.status == 1
    assert contents(path) == before
