"""`tailrace log` and read-only jobs print the same for a directory in S3 as for the same files on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.cli.main import main
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.load.load import _target
from tailrace.spark.jobs.place import Place
from tailrace.spark.jobs.verify.reindex import reindex
from tailrace.spark.jobs.verify.verify import verify
from tests.support.golden import golden
from tests.support.inline_spark import InlineSpark
from tests.support.s3_server import KEYS, S3Server


@pytest.fixture
def places(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Return the same directory on disk and in the store; the keys are in the environment, as for other tools."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["accessKey"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["secretKey"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    directory = golden("transactions").unpack(tmp_path / "kafka-logs")
    return str(directory), s3.upload(directory, "commands", "kafka-logs")


def run_command(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(list(words))
    found = capsys.readouterr()
    return status, found.out, found.err


@pytest.mark.parametrize(
    ("verb", "below", "more"),
    [
        ("ls", "", []),
        ("cat", "", ["--isolation", "read_committed"]),
        ("verify", "", ["--deep"]),
        ("explain", "/topic-0", ["--offset", "20"]),
        ("dump", "/topic-0", []),
        ("dump", "/topic-0/00000000000000000000.timeindex", []),
    ],
)
def test_a_command_prints_the_same_for_a_bucket_and_a_directory(
    verb: str, below: str, more: list[str], places: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = places
    status, text, warnings = run_command(capsys, "log", verb, here + below, *more)
    assert text
    assert run_command(capsys, "log", verb, there + below, *more) == (
        status,
        text.replace(here, there),
        warnings.replace(here, there),
    )


def test_the_verify_job_has_the_same_findings_and_reuses_its_state(places: tuple[str, str], tmp_path: Path) -> None:
    here, there = places
    expected = verify(InlineSpark(), here)
    found = verify(InlineSpark(), there, state=str(tmp_path / "state"))
    assert [result.records for result in found.directories[0].partitions] == [
        result.records for result in expected.directories[0].partitions
    ]
    assert found.segments_read > 1
    again = verify(InlineSpark(), there, state=str(tmp_path / "state"))
    assert (again.segments_read, again.segments_remembered) == (1, found.segments_read - 1)


def test_commands_that_write_are_refused(places: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, there = places
    assert run_command(capsys, "log", "repair", there)[0] == 2
    assert "object store, which is read-only" in run_command(capsys, "log", "repair", there)[2]
    with pytest.raises(JobError, match="which is read-only"):
        reindex(InlineSpark(), there)
    with pytest.raises(JobError, match="which is read-only"):
        _target(there, {})


def test_the_source_reads_an_address_in_a_store(places: tuple[str, str]) -> None:
    place = Place.parse(places[1] + "?region=us-east-1")
    with place.opened() as transport:
        (partition,) = transport.partitions(place.options().selection)
        assert transport.latest([partition])[partition] > 0


def test_a_wrong_address_is_reported(s3: S3Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(capsys, "log", "ls", "ftp://host/logs")[2].endswith(
        "ftp://host/logs is not the address of a directory: ftp:// is not supported; "
        "use s3://, s3a://, gs:// or file://\n"
    )
