"""`tailrace log` and the jobs that only read, on a directory in S3: what they say of the same files on disk."""

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
    """The same directory here and there; the environment has the keys, as for any other tool."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["accessKey"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["secretKey"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    directory = golden("transactions").unpack(tmp_path / "kafka-logs")
    return str(directory), s3.upload(directory, "commands", "kafka-logs")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
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
def test_a_command_says_the_same(
    verb: str, below: str, more: list[str], places: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = places
    status, text, warnings = said(capsys, "log", verb, here + below, *more)
    assert text
    assert said(capsys, "log", verb, there + below, *more) == (
        status,
        text.replace(here, there),
        warnings.replace(here, there),
    )


def test_the_verify_job_finds_the_same_and_remembers_it(places: tuple[str, str], tmp_path: Path) -> None:
    here, there = places
    expected = verify(InlineSpark(), here)
    found = verify(InlineSpark(), there, state=str(tmp_path / "state"))
    assert [result.records for result in found.directories[0].partitions] == [
        result.records for result in expected.directories[0].partitions
    ]
    assert found.segments_read > 1
    again = verify(InlineSpark(), there, state=str(tmp_path / "state"))
    assert (again.segments_read, again.segments_remembered) == (1, found.segments_read - 1)


def test_what_would_write_is_refused(places: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, there = places
    assert said(capsys, "log", "repair", there)[0] == 2
    assert "object store, which is only read from" in said(capsys, "log", "repair", there)[2]
    with pytest.raises(JobError, match="which is only read from"):
        reindex(InlineSpark(), there)
    with pytest.raises(JobError, match="which is only read from"):
        _target(there)


def test_a_place_in_a_store_is_read_by_the_source(places: tuple[str, str]) -> None:
    place = Place.parse(places[1] + "?region=us-east-1")
    with place.opened() as transport:
        (partition,) = transport.partitions(place.options().selection)
        assert transport.latest([partition])[partition] > 0


def test_a_wrong_address_is_told(s3: S3Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "log", "ls", "ftp://host/logs")[2].endswith(
        "ftp://host/logs is no address of a directory: there is no reading from ftp://; "
        "s3://, s3a://, gs:// and file:// are known\n"
    )
