"""ObjectStore: lists folders and reads ranges of S3 and Google Cloud Storage, through pyarrow.

pyarrow signs requests, keeps connections open, and retries transient failures a bounded number of times. It finds
credentials like Amazon's and Google's own tools. Its errors are free text. This module turns them into an OSError with
one sentence and an errno.
"""

from __future__ import annotations

import errno
import os
import re
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from tailrace.object_stores.settings import ATTEMPTS, RETRY_SECONDS, StoreSettings
from tailrace.object_stores.store_address import AMAZON, GOOGLE


class ListedObject(NamedTuple):
    """A name in a listing."""

    is_directory: bool
    size: int
    modified_ms: int


class ObjectReader(Protocol):
    """An open object."""

    def read(self, position: int, size: int) -> bytes:
        """Read a range; the result is shorter only at the end of the object. Thread-safe."""


class ObjectStore(Protocol):
    def list(self, path: str) -> dict[str, ListedObject]:
        """Return the names directly below a path. Raise FileNotFoundError if there are none."""

    def open(self, path: str) -> ObjectReader: ...


# File systems of pyarrow, shared by the tasks of this process, so that connections and credentials are reused. A forked
# process creates its own.
_systems: dict[tuple[int, StoreSettings, str, str], Any] = {}


class ArrowStore:
    """An object store accessed through pyarrow."""

    def __init__(self, settings: StoreSettings) -> None:
        self._settings = settings

    def _system(self, path: str) -> Any:
        scheme, _, rest = path.partition("://")
        bucket = rest.partition("/")[0]
        key = os.getpid(), self._settings, scheme, bucket
        if key not in _systems:
            new = _new_amazon if scheme in AMAZON else _new_google
            _systems[key] = new(self._settings, path, bucket)
        return _systems[key]

    def list(self, path: str) -> dict[str, ListedObject]:
        fs = _arrow(path)
        scheme, _, key = path.partition("://")
        # For GCS, pyarrow lists a folder only if it has an object of its own. So list everything below, and derive the
        # folders from the names.
        try:
            listed = self._system(path).get_file_info(fs.FileSelector(key, recursive=scheme in GOOGLE))
        except OSError as error:
            raise _as_os_error(error, path) from None
        found: dict[str, ListedObject] = {}
        for info in listed:
            name, below, _ = info.path.removeprefix(f"{key}/").partition("/")
            is_directory = bool(below) or info.type == fs.FileType.Directory
            found[name] = ListedObject(is_directory, info.size or 0, (info.mtime_ns or 0) // 1_000_000)
        if not found:
            raise FileNotFoundError(errno.ENOENT, "no such object", path)
        return found

    def open(self, path: str) -> ArrowObject:
        try:
            return ArrowObject(self, path, self._system(path).open_input_file(path.partition("://")[2]))
        except OSError as error:
            raise _as_os_error(error, path) from None

    def is_there(self, path: str) -> bool:
        fs = _arrow(path)
        try:
            return bool(self._system(path).get_file_info(path.partition("://")[2]).type == fs.FileType.File)
        except OSError as error:
            raise _as_os_error(error, path) from None


class ArrowObject:
    """An open object. pyarrow queries the object's size when it opens it, which costs one request."""

    def __init__(self, store: ArrowStore, path: str, file: Any) -> None:
        self._store = store
        self._path = path
        self._file = file

    def read(self, position: int, size: int) -> bytes:
        try:
            if self._file.closed:
                # A GCS file is closed when a small object was received completely.
                self._file = self._store.open(self._path)._file
            found: bytes = self._file.read_at(size, position)
        except OSError as error:
            converted = _as_os_error(error, self._path)
            # If an object was deleted after it was opened, pyarrow reports only an invalid response.
            if converted.errno == errno.EIO and not self._store.is_there(self._path):
                converted = FileNotFoundError(errno.ENOENT, "the object was deleted", self._path)
            raise converted from None
        return found


def _new_amazon(settings: StoreSettings, path: str, bucket: str) -> Any:
    fs = _arrow(path)
    named = settings.endpoint_override or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    host, scheme = StoreSettings(endpoint_override=named).endpoint
    region = settings.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region is None:
        region = "us-east-1" if host else _region_of(fs, bucket)  # servers other than Amazon's have no regions
    try:
        return fs.S3FileSystem(
            access_key=settings.access_key,
            secret_key=settings.secret_key,
            session_token=settings.session_token,
            role_arn=settings.role_arn,
            anonymous=settings.anonymous,
            region=region,
            endpoint_override=host,
            scheme=scheme,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        )
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), path) from None
    except OSError as error:
        raise _as_os_error(error, path) from None


def _region_of(fs: Any, bucket: str) -> str | None:
    """Query the region of a bucket, which is public. None: use the region of the library's configuration."""
    try:
        return str(fs.resolve_s3_region(bucket))
    except OSError:
        return None


def _new_google(settings: StoreSettings, path: str, bucket: str) -> Any:
    fs = _arrow(path)
    host, scheme = settings.endpoint
    return fs.GcsFileSystem(
        anonymous=settings.anonymous,
        endpoint_override=host,
        scheme=scheme,
        retry_time_limit=timedelta(seconds=RETRY_SECONDS),
    )


def _arrow(path: str) -> Any:
    try:
        from pyarrow import fs
    except ImportError:
        raise OSError(
            errno.ENOSYS,
            "reading from an object store needs pyarrow: pip install 'tailrace[s3]'",
            path,
        ) from None
    return fs


# Patterns in the messages of the libraries, with errno and sentence for each.
_ERRORS = (
    (r"NO_SUCH_BUCKET|bucket does not exist", errno.ENOENT, "no such bucket"),
    (r"Status\(NOT_FOUND", errno.ENOENT, "no such bucket or object"),
    (r"NO_SUCH_KEY|Path does not exist|No such file or directory", errno.ENOENT, "no such object"),
    (r"INVALID_ACCESS_KEY_ID|InvalidAccessKeyId", errno.EACCES, "the store does not know this access key"),
    (r"SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch", errno.EACCES, "the secret key is wrong"),
    (r"EXPIRED_TOKEN|ExpiredToken", errno.EACCES, "the session token has expired"),
    (
        r"ACCESS_DENIED|HTTP status 40[13]|Permission denied|UNAUTHENTICATED|PERMISSION_DENIED",
        errno.EACCES,
        "access denied: the credentials are missing or not sufficient",
    ),
    (
        r"HTTP status 301|PERMANENT_REDIRECT|PermanentRedirect",
        errno.EINVAL,
        "the bucket is in another region: set region",
    ),
    (r"NETWORK_CONNECTION|[Cc]ould not connect|UNAVAILABLE", errno.ECONNREFUSED, "the store cannot be reached"),
    (r"SLOW_DOWN|SlowDown|HTTP status 503", errno.EBUSY, f"the store was too busy ({ATTEMPTS} attempts)"),
)


def _as_os_error(error: OSError, path: str) -> OSError:
    prose = str(error)
    for pattern, number, sentence in _ERRORS:
        if re.search(pattern, prose):
            return OSError(number, sentence, path)
    if error.errno is not None and error.strerror is not None:
        return OSError(error.errno, error.strerror, path)
    # The request id is removed: it is useful only with access to the logs of the store.
    return OSError(errno.EIO, re.sub(r"\s*\(Request ID: [^)]*\)", "", prose).strip(), path)
