"""S3Requests: signed requests to a bucket, and errors as an OSError with one sentence."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

from tailrace.object_stores.settings import StoreSettings
from tailrace.object_stores.writing.aws_credentials import AwsCredentials
from tailrace.object_stores.writing.aws_signature import signed_headers
from tailrace.object_stores.writing.web_requests import Answer, Remaining, WebRequests

_SENTENCES: Final = {
    "NoSuchBucket": (errno.ENOENT, "no such bucket"),
    "NoSuchKey": (errno.ENOENT, "no such object"),
    "InvalidAccessKeyId": (errno.EACCES, "the store does not know this access key"),
    "SignatureDoesNotMatch": (errno.EACCES, "the secret key is wrong"),
    "ExpiredToken": (errno.EACCES, "the session token has expired"),
    "AccessDenied": (errno.EACCES, "access denied: the credentials are missing or not sufficient"),
    "PermanentRedirect": (errno.EINVAL, "the bucket is in another region: set the region"),
    "AuthorizationHeaderMalformed": (errno.EINVAL, "the bucket is in another region: set the region"),
    "SlowDown": (errno.EBUSY, "the store was too busy"),
    "PreconditionFailed": (errno.EEXIST, "the object exists already"),
}
_BY_STATUS: Final = {403: "AccessDenied", 404: "NoSuchKey", 412: "PreconditionFailed", 503: "SlowDown"}


class S3Requests:
    def __init__(self, settings: StoreSettings, bucket: str) -> None:
        named = (
            settings.endpoint_override or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        )
        host, scheme = StoreSettings(endpoint_override=named).endpoint
        region = settings.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        self._region = region or "us-east-1"
        self._bucket = bucket
        if host is not None:
            self._base = f"{scheme}://{host}/{quote(bucket)}/"
        elif "." in bucket:  # no certificate fits such a host name
            self._base = f"https://s3.{self._region}.amazonaws.com/{quote(bucket)}/"
        else:
            self._base = f"https://{bucket}.s3.{self._region}.amazonaws.com/"
        self._web = WebRequests()
        self._credentials = AwsCredentials(settings, self._region)

    def send(
        self,
        method: str,
        key: str,
        query: Mapping[str, str] | None = None,
        body: bytes | memoryview = b"",
        headers: Mapping[str, str] | None = None,
        *,
        remaining_ms: Remaining,
    ) -> Answer:
        """Send a request. Return the answer if its status is below 300, or 404, 412, 416 or 501."""
        url = self._base + quote(key, safe="/-_.~") + (f"?{urlencode(query, quote_via=quote)}" if query else "")

        def complete() -> Mapping[str, str]:
            keys = self._credentials.keys()
            if keys is None:
                return headers or {}
            return signed_headers(method, url, headers or {}, body, keys, self._region, "s3")

        answer = self._web.send(method, url, complete, body, remaining_ms=remaining_ms)
        if answer.status < 300 or answer.status in (404, 412, 416, 501):
            return answer
        raise self.error(answer, key)

    def error(self, answer: Answer, key: str) -> OSError:
        found = re.search(r"<Code>([^<]*)</Code>", answer.text)
        code = found[1] if found else _BY_STATUS.get(answer.status, "")
        number, sentence = _SENTENCES.get(code, (errno.EIO, f"the store responded with {answer.status} {code}".strip()))
        return OSError(number, sentence, f"s3://{self._bucket}/{key}")
