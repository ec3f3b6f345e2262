"""GcsBlobs: writes, reads and deletes objects of a bucket in Google Cloud Storage.

An object is uploaded in a session, in parts. After a failure the session says how far it is, and the upload resumes
there. A session that was not completed leaves no object; Google deletes it after a week.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from tailrace.object_stores.settings import StoreSettings
from tailrace.object_stores.writing.google_tokens import GoogleTokens
from tailrace.object_stores.writing.s3_blobs import PART_BYTES, READ_MS, in_parts
from tailrace.object_stores.writing.web_requests import ATTEMPTS, Answer, Remaining, WebRequests, in_ms
from tailrace.records.batch import Buffer

_HOST: Final = "https://storage.googleapis.com"
_ABORT_MS: Final = 10_000
_INCOMPLETE: Final = 308
_SENTENCES: Final = {
    401: (errno.EACCES, "access denied: the credentials are missing or not sufficient"),
    403: (errno.EACCES, "access denied: the credentials are missing or not sufficient"),
    404: (errno.ENOENT, "no such bucket or object"),
    412: (errno.EEXIST, "the object exists already"),
    429: (errno.EBUSY, "the store was too busy"),
    503: (errno.EBUSY, "the store was too busy"),
}


class GcsBlobs:
    def __init__(self, settings: StoreSettings, bucket: str, prefix: str = "", *, part_bytes: int = PART_BYTES) -> None:
        self.place = f"gs://{bucket}/{prefix}".rstrip("/")
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._bucket = quote(bucket, safe="")
        host, scheme = settings.endpoint
        self._host = _HOST if host is None else f"{scheme}://{host}"
        self._tokens = None if settings.anonymous else GoogleTokens()
        self._web = WebRequests()
        self._part_bytes = part_bytes

    def write(self, key: str, pieces: Iterable[Buffer], remaining_ms: Remaining) -> None:
        """Write a new object. Raise FileExistsError if there is one, and TimeoutError if the time is over."""
        name = self._prefix + key
        query = urlencode({"uploadType": "resumable", "name": name, "ifGenerationMatch": "0"})
        url = f"{self._host}/upload/storage/v1/b/{self._bucket}/o?{query}"
        started = self._send("POST", url, b"", {"X-Upload-Content-Type": "application/octet-stream"}, remaining_ms)
        if started.status != 200 or "location" not in started.headers:
            raise self._error(started, name)
        session = self._absolute(started.headers["location"])
        try:
            parts = in_parts(pieces, self._part_bytes)
            part, position = next(parts, b""), 0
            while True:
                following = next(parts, None)
                self._put_part(session, name, part, position, following is None, remaining_ms)
                position += len(part)
                if following is None:
                    return
                part = following
        except BaseException:
            with suppress(OSError):
                self._send("DELETE", session, b"", {}, in_ms(_ABORT_MS))
            raise

    def _put_part(
        self, session: str, name: str, part: bytes, start: int, is_last: bool, remaining_ms: Remaining
    ) -> None:
        """Send a part, and what is missing of it after a failure."""
        done, end = start, start + len(part)
        total = str(end) if is_last else "*"
        for _ in range(ATTEMPTS):
            data = memoryview(part)[done - start :]
            range_ = f"bytes {done}-{end - 1}/{total}" if data else f"bytes */{total}"
            answer = self._send("PUT", session, data, {"Content-Range": range_}, remaining_ms, retried=frozenset())
            if answer.status >= 500 or answer.status in (408, 429):
                asked = {"Content-Range": f"bytes */{total}"}
                answer = self._send("PUT", session, b"", asked, remaining_ms)
            if answer.status in (200, 201):
                return
            if answer.status != _INCOMPLETE:
                raise self._error(answer, name)
            reached = re.fullmatch(r"bytes=0-(\d+)", answer.headers.get("range", ""))
            done = max(int(reached[1]) + 1 if reached else 0, start)
            if done >= end and not is_last:
                return
        raise OSError(errno.EIO, f"a part of the object cannot be uploaded ({ATTEMPTS} attempts)", self._shown(name))

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        if end is not None and end <= start:
            return b""
        headers = {"Range": f"bytes={start}-{'' if end is None else end - 1}"}
        name = self._prefix + key
        answer = self._send("GET", f"{self._object(name)}?alt=media", b"", headers, in_ms(READ_MS))
        if answer.status == 416:
            return b""
        if answer.status >= 300:
            raise self._error(answer, name)
        return answer.body

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            name = self._prefix + key
            answer = self._send("DELETE", self._object(name), b"", {}, in_ms(READ_MS))
            if answer.status >= 300 and answer.status != 404:
                raise self._error(answer, name)

    def _object(self, name: str) -> str:
        return f"{self._host}/storage/v1/b/{self._bucket}/o/{quote(name, safe='')}"

    def _absolute(self, location: str) -> str:
        """Return the address of a session at the host of the settings, since an emulator may name another one."""
        parts = urlsplit(location)
        return location if self._host == _HOST else f"{self._host}{parts.path}?{parts.query}"

    def _send(
        self,
        method: str,
        url: str,
        body: bytes | memoryview,
        headers: Mapping[str, str],
        remaining_ms: Remaining,
        retried: frozenset[int] | None = None,
    ) -> Answer:
        def complete() -> Mapping[str, str]:
            length = {} if method in ("GET", "DELETE") or body else {"Content-Length": "0"}
            token = {} if self._tokens is None else {"Authorization": f"Bearer {self._tokens.token()}"}
            return {**headers, **length, **token}

        if retried is None:
            return self._web.send(method, url, complete, body, remaining_ms=remaining_ms)
        return self._web.send(method, url, complete, body, remaining_ms=remaining_ms, retried=retried)

    def _error(self, answer: Answer, name: str) -> OSError:
        number, sentence = _SENTENCES.get(answer.status, (errno.EIO, f"the store responded with {answer.status}"))
        with suppress(ValueError, TypeError, KeyError):
            if answer.status not in _SENTENCES:
                sentence = f"{sentence}: {json.loads(answer.body)['error']['message']}"
        return OSError(number, sentence, self._shown(name))

    def _shown(self, name: str) -> str:
        return f"{self.place.partition('://')[0]}://{self._bucket}/{name}"
