"""S3Blobs: writes, reads and deletes objects of a bucket.

A large object is uploaded in parts. The parts of an upload that was not completed are invisible, but cost money. So a
failed upload is aborted, and `abandoned` finds those of a process that died.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, NamedTuple

from tailrace.object_stores.settings import StoreSettings
from tailrace.object_stores.writing.s3_requests import S3Requests
from tailrace.object_stores.writing.web_requests import Remaining, in_ms
from tailrace.records.batch import Buffer

PART_BYTES: Final = 8 * 1024 * 1024
READ_MS: Final = 60_000
_ABORT_MS: Final = 10_000
_NEW: Final = {"If-None-Match": "*"}


class Upload(NamedTuple):
    """An upload that was begun and not completed."""

    key: str
    upload_id: str
    started_ms: int


class S3Blobs:
    def __init__(self, settings: StoreSettings, bucket: str, prefix: str = "", *, part_bytes: int = PART_BYTES) -> None:
        self.place = f"s3://{bucket}/{prefix}".rstrip("/")
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._requests = S3Requests(settings, bucket)
        self._part_bytes = part_bytes

    def write(self, key: str, pieces: Iterable[Buffer], remaining_ms: Remaining) -> None:
        """Write a new object. Raise FileExistsError if there is one, and TimeoutError if the time is over."""
        name = self._prefix + key
        parts = in_parts(pieces, self._part_bytes)
        first = next(parts, b"")
        second = next(parts, None)
        if second is None:
            self._put(name, {}, first, len(first), remaining_ms)
        else:
            self._upload(name, [first, second], parts, remaining_ms)

    def _upload(self, name: str, first: list[bytes], rest: Iterator[bytes], remaining_ms: Remaining) -> None:
        answer = self._requests.send("POST", name, {"uploads": ""}, remaining_ms=remaining_ms)
        found = re.search(r"<UploadId>([^<]+)</UploadId>", answer.text)
        if answer.status != 200 or found is None:
            raise self._requests.error(answer, name)
        upload = {"uploadId": html.unescape(found[1])}
        try:
            tags, size = [], 0
            for number, part in enumerate(_chained(first, rest), 1):
                query = {"partNumber": str(number), **upload}
                put = self._requests.send("PUT", name, query, part, remaining_ms=remaining_ms)
                if put.status != 200:
                    raise self._requests.error(put, name)
                tags.append(f"<Part><PartNumber>{number}</PartNumber><ETag>{put.headers['etag']}</ETag></Part>")
                size += len(part)
            body = f"<CompleteMultipartUpload>{''.join(tags)}</CompleteMultipartUpload>".encode()
            self._put(name, upload, body, size, remaining_ms)
        except BaseException:
            self.abort(Upload(name, upload["uploadId"], 0))
            raise

    def _put(self, name: str, query: dict[str, str], body: bytes, size: int, remaining_ms: Remaining) -> None:
        """Create the object, from its bytes or from its parts, if it does not exist."""
        method = "POST" if query else "PUT"
        answer = self._requests.send(method, name, query, body, _NEW, remaining_ms=remaining_ms)
        if answer.status == 501:  # a store without conditional requests
            answer = self._requests.send(method, name, query, body, remaining_ms=remaining_ms)
        lost = answer.status == 412 or (query and answer.status == 404)
        if lost and answer.attempts > 1 and self._size(name, remaining_ms) == size:
            return  # an earlier attempt succeeded, and its answer was lost
        if answer.status >= 300 or b"<Error>" in answer.body:  # completing may fail after the status was sent
            raise self._requests.error(answer, name)

    def _size(self, name: str, remaining_ms: Remaining) -> int | None:
        answer = self._requests.send("HEAD", name, remaining_ms=remaining_ms)
        return int(answer.headers.get("content-length", "-1")) if answer.status == 200 else None

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        if end is not None and end <= start:
            return b""
        headers = {"Range": f"bytes={start}-{'' if end is None else end - 1}"}
        answer = self._requests.send("GET", self._prefix + key, None, b"", headers, remaining_ms=in_ms(READ_MS))
        if answer.status == 416:
            return b""
        if answer.status >= 300:
            raise self._requests.error(answer, self._prefix + key)
        return answer.body

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            answer = self._requests.send("DELETE", self._prefix + key, remaining_ms=in_ms(READ_MS))
            if answer.status >= 300 and answer.status != 404:
                raise self._requests.error(answer, self._prefix + key)

    # Uploads that were not completed

    def abandoned(self) -> Iterator[Upload]:
        """Yield the uploads that were begun and not completed."""
        query = {"uploads": "", "prefix": self._prefix}
        while True:
            answer = self._requests.send("GET", "", query, remaining_ms=in_ms(READ_MS))
            if answer.status != 200:
                raise self._requests.error(answer, self._prefix)
            for one in re.findall(r"<Upload>(.*?)</Upload>", answer.text, re.DOTALL):
                found = dict(re.findall(r"<(Key|UploadId|Initiated)>([^<]*)<", one))
                if not found["Key"].startswith(self._prefix):
                    continue
                started = datetime.fromisoformat(found["Initiated"])
                upload_id = html.unescape(found["UploadId"])
                yield Upload(html.unescape(found["Key"]), upload_id, int(started.timestamp() * 1000))
            markers = dict(re.findall(r"<Next(KeyMarker|UploadIdMarker)>([^<]+)<", answer.text))
            if "<IsTruncated>true</IsTruncated>" not in answer.text or "KeyMarker" not in markers:
                return
            query |= {
                "key-marker": html.unescape(markers["KeyMarker"]),
                "upload-id-marker": html.unescape(markers.get("UploadIdMarker", "")),
            }

    def abort(self, upload: Upload) -> None:
        """End an upload and free its parts. A failure leaves it to `abandoned`."""
        with suppress(OSError):
            query = {"uploadId": upload.upload_id}
            self._requests.send("DELETE", upload.key, query, remaining_ms=in_ms(_ABORT_MS))


def in_parts(pieces: Iterable[Buffer], size: int) -> Iterator[bytes]:
    """Yield parts of exactly `size` bytes, and then the rest."""
    held = bytearray()
    for piece in pieces:
        held += piece
        while len(held) >= size:
            yield bytes(memoryview(held)[:size])
            del held[:size]
    if held:
        yield bytes(held)


def _chained(first: list[bytes], rest: Iterator[bytes]) -> Iterator[bytes]:
    while first:
        yield first.pop(0)
    yield from rest
