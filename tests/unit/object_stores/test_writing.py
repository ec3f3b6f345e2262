"""Objects are written completely or not at all, to an S3 server and to an emulator of Google's store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tailrace.object_stores.settings import StoreSettings
from tailrace.object_stores.store_address import Place
from tailrace.object_stores.writing.open_blobs import blobs_of
from tailrace.object_stores.writing.s3_blobs import S3Blobs, in_parts
from tailrace.object_stores.writing.web_requests import in_ms
from tests.support.gcs_server import gcs_server
from tests.support.s3_server import KEYS, S3Server

PART = 5 * 1024 * 1024  # the smallest that S3 accepts


def s3_settings(s3: S3Server) -> StoreSettings:
    keys = {"access_key": KEYS["accessKey"], "secret_key": KEYS["secretKey"]}
    return StoreSettings(endpoint_override=s3.endpoint, region="us-east-1", **keys)


@pytest.fixture
def blobs(s3: S3Server) -> S3Blobs:
    if "written" not in s3.backend.buckets:
        s3.backend.create_bucket("written", "us-east-1")
    s3.requests.clear()
    return S3Blobs(s3_settings(s3), "written", "some/tier", part_bytes=PART)


@pytest.fixture(scope="module")
def google() -> Iterator[Any]:
    pytest.importorskip("gcp_storage_emulator")
    with gcs_server() as endpoint:
        yield blobs_of(Place("gs://logs/some/tier", StoreSettings(endpoint_override=endpoint, anonymous=True)))


def content(size: int) -> list[bytes]:
    data = os.urandom(size)
    return [data[at : at + 700_000] for at in range(0, size, 700_000)]


@pytest.mark.parametrize("size", [0, 10, PART, 2 * PART + 17])
def test_an_object_in_s3_is_read_back(blobs: S3Blobs, size: int) -> None:
    pieces, key = content(size), f"orders-{size} ä/0.log"
    blobs.write(key, pieces, in_ms(60_000))
    whole = b"".join(pieces)
    assert blobs.read(key) == whole
    assert blobs.read(key, 3, 9) == whole[3:9]
    assert list(blobs.abandoned()) == []
    blobs.delete([key, key])
    with pytest.raises(FileNotFoundError, match="no such object"):
        blobs.read(key)


@pytest.mark.parametrize("size", [10, 2 * PART])
def test_an_object_in_s3_is_never_replaced(blobs: S3Blobs, size: int) -> None:
    key = f"once-{size}"
    blobs.write(key, [b"first"], in_ms(60_000))
    with pytest.raises(FileExistsError, match="exists already"):
        blobs.write(key, content(size), in_ms(60_000))
    assert blobs.read(key) == b"first"
    assert list(blobs.abandoned()) == []


def test_a_busy_server_is_tried_again(blobs: S3Blobs, s3: S3Server) -> None:
    s3.busy = 3
    blobs.write("busy", [b"data"], in_ms(60_000))
    assert [request.method for request in s3.requests] == ["PUT"] * 4
    s3.busy = 100
    with pytest.raises(OSError, match="the store was too busy"):
        blobs.read("busy")
    assert s3.busy == 95
    s3.busy = 0


def test_an_upload_that_fails_is_ended(blobs: S3Blobs, s3: S3Server) -> None:
    def pieces() -> Iterator[bytes]:
        yield from content(2 * PART)
        raise OSError("the disk failed")

    with pytest.raises(OSError, match="the disk failed"):
        blobs.write("failed", pieces(), in_ms(60_000))
    assert [request.method for request in s3.requests] == ["POST", "PUT", "PUT", "DELETE"]
    assert list(blobs.abandoned()) == []


def test_an_upload_ends_at_its_deadline(blobs: S3Blobs, s3: S3Server) -> None:
    def after(requests: int) -> Callable[[], int]:
        return lambda: 1000 if len(s3.requests) < requests else 0

    s3.busy = 0
    with pytest.raises(TimeoutError, match="the time for the request is over"):
        blobs.write("late", content(3 * PART), after(2))
    assert list(blobs.abandoned()) == []
    with pytest.raises(FileNotFoundError):
        blobs.read("late")


def test_uploads_of_a_dead_process_are_found_and_ended(blobs: S3Blobs, s3: S3Server) -> None:
    blobs._requests.send("POST", "some/tier/dead.log", {"uploads": ""}, remaining_ms=in_ms(60_000))
    blobs._requests.send("POST", "other/dead.log", {"uploads": ""}, remaining_ms=in_ms(60_000))
    (upload,) = blobs.abandoned()
    assert upload.key == "some/tier/dead.log"
    assert upload.started_ms > 1_000_000_000_000
    blobs.abort(upload)
    assert list(blobs.abandoned()) == []


def test_missing_credentials_are_an_error(s3: S3Server) -> None:
    one = S3Blobs(StoreSettings(endpoint_override=s3.endpoint), "written")
    with pytest.raises(OSError, match="no credentials were found"):
        one.read("any")


@pytest.mark.parametrize("size", [0, 10, 9 * 1024 * 1024])
def test_an_object_in_googles_store_is_read_back(google: Any, size: int) -> None:
    pieces, key = content(size), f"orders-{size} ä/0.log"
    google.write(key, pieces, in_ms(60_000))
    whole = b"".join(pieces)
    assert google.read(key) == whole
    assert google.read(key, 3, 9) == whole[3:9]
    google.delete([key, key])
    with pytest.raises(FileNotFoundError):
        google.read(key)


def test_parts_have_one_size() -> None:
    assert list(in_parts([b"abc", b"", b"defgh", b"i"], 4)) == [b"abcd", b"efgh", b"i"]
    assert list(in_parts([], 4)) == []
