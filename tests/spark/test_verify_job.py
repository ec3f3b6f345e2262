"""`verify` on Spark has the same findings as on one machine, in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tailrace.log.directories.data_directory import DataDirectory, read_data_directory
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.findings import Finding
from tailrace.log.inspect.verify import PartitionResult, verify_directory, verify_partition
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.verify.verify import verify
from tests.support.command import contents, tailrace
from tests.support.damaged_logs import all_logs, damage


def on_one_machine(path: Path, *, deep: bool) -> tuple[list[PartitionResult], list[Finding]]:
    directory: DataDirectory = read_data_directory(DiskFiles(), str(path))
    folders = [folder for folder in directory.folders if folder.mark != "deleted"]
    results = [verify_partition(DiskFiles(), folder, deep=deep) for folder in folders]
    findings = verify_directory(directory, results) + [one for result in results for one in result.findings]
    return results, findings


def test_verify_on_spark_has_the_findings_of_log_verify(spark: Any, tmp_path: Path) -> None:
    path = all_logs(tmp_path / "data")
    damage(path, seed=7)
    found = verify(spark, str(path), deep=True, state=str(tmp_path / "state"), task_bytes=30_000)
    assert found.tasks > 3
    results, findings = on_one_machine(path, deep=True)
    assert found.directories[0].partitions == results
    assert found.directories[0].findings == findings
    assert found.segments_remembered == 0

    # In the second run all sealed segments are known, except one that has changed since.
    changed = min(path.glob("plain-*/*.log"))
    changed.write_bytes(b"\0" + changed.read_bytes()[1:])
    again = verify(spark, str(path), deep=True, state=str(tmp_path / "state"), task_bytes=1_000_000)
    assert (again.directories[0].partitions, again.directories[0].findings) == on_one_machine(path, deep=True)
    assert again.segments_remembered > 10
    assert again.segments_read + again.segments_remembered == found.segments_read


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(11, 17))
def test_verify_on_spark_has_the_findings_of_log_verify_for_damaged_files(
    spark: Any, tmp_path: Path, seed: int
) -> None:
    path = all_logs(tmp_path / "data")
    damage(path, seed)
    for deep in (False, True):
        found = verify(spark, str(path), deep=deep, task_bytes=4_000 if deep else 100_000)
        assert (found.directories[0].partitions, found.directories[0].findings) == on_one_machine(path, deep=deep)


def test_an_unreadable_directory_is_reported_in_one_sentence(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(JobError, match="nowhere cannot be read: No such file or directory"):
        verify(spark, str(tmp_path / "nowhere"))
    path = all_logs(tmp_path / "data")
    with pytest.raises(JobError, match="has no partition 7 of rolls"):
        verify(spark, str(path), topics=["rolls"], partitions=[7])
    (tmp_path / "state").write_text("a file")
    with pytest.raises(JobError, match=r"verify failed: .*state"):
        verify(spark, str(path), topics=["rolls"], state=str(tmp_path / "state"))


def test_job_verify_prints_the_report_of_log_verify(spark: Any, tmp_path: Path) -> None:
    path = all_logs(tmp_path / "data")
    before = contents(path)
    local = tailrace("log", "verify", path, "--json")
    ran = tailrace("job", "verify", path, "--json", "--master", "local[2]")
    assert ran.status == local.status
    assert "would check them, in less time" in ran.err  # a hint, since the logs are small
    assert ran.json["directories"] == [local.json]
    in_words = tailrace("job", "verify", path, "--topic", "plain")
    assert in_words.lines[:-1] == tailrace("log", "verify", path, "--topic", "plain").lines
    nothing = tailrace("job", "verify", path / "nowhere")
    assert (nothing.status, nothing.out) == (2, "")
    assert nothing.err == f"tailrace: {path}/nowhere cannot be read: No such file or directory\n"
    assert contents(path) == before
