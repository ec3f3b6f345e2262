"""ObjectStore: two verbs, list a folder and read a range; S3 and Google Cloud Storage through pyarrow.

pyarrow's library signs, keeps connections open, and tries again what may succeed the second time, a bounded number of
times. It looks for credentials where Amazon's and Google's own tools do. It tells what went wrong in prose; here that
becomes an OSError of one sentence, with the errno that a disk would give.
"""

from __future__ import annotations

import errno
import os
import re
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from tailrace.object_stores.address import AMAZON, GOOGLE
from tailrace.object_stores.settings import ATTEMPTS, RETRY_SECONDS, StoreSettings


class Found(NamedTuple):
    """What a listing says of a name."""

    is_directory: bool
    size: int
    modified_ms: int


class ObjectReader(Protocol):
    """An object that was found."""

    def read(self, position: int, size: int) -> bytes:
        """Those bytes; fewer only at the object's end. From any thread."""


class ObjectStore(Protocol):
    def list(self, path: str) -> dict[str, Found]:
        """The names right below a path. FileNotFoundError if there are none: a bucket has no empty folders."""

    def open(self, path: str) -> ObjectReader: ...


# pyarrow's file systems of this process: tasks that follow each other in it find connections and credentials again. A
# process that was forked off has to make its own.
_systems: dict[tuple[int, StoreSettings, str, str], Any] = {}


class ArrowStore:
    """A store behind one of pyarrow's file systems."""

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

    def list(self, path: str) -> dict[str, Found]:
        from pyarrow import fs

        scheme, _, key = path.partition("://")
        # Of Google's store pyarrow lists only folders that somebody made an object for: they are told from all names.
        try:
            listed = self._system(path).get_file_info(fs.FileSelector(key, recursive=scheme in GOOGLE))
        except OSError as error:
            raise _told(error, path) from None
        found: dict[str, Found] = {}
        for info in listed:
            name, below, _ = info.path.removeprefix(f"{key}/").partition("/")
            is_directory = bool(below) or info.type == fs.FileType.Directory
            found[name] = Found(is_directory, info.size or 0, (info.mtime_ns or 0) // 1_000_000)
        if not found:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", path)
        return found

    def open(self, path: str) -> ArrowObject:
        try:
            return ArrowObject(self, path, self._system(path).open_input_file(path.partition("://")[2]))
        except OSError as error:
            raise _told(error, path) from None

    def is_there(self, path: str) -> bool:
        from pyarrow import fs

        try:
            return bool(self._system(path).get_file_info(path.partition("://")[2]).type == fs.FileType.File)
        except OSError as error:
            raise _told(error, path) from None


class ArrowObject:
    """pyarrow asks for the object's size when it opens it, one request more than there would have to be."""

    def __init__(self, store: ArrowStore, path: str, file: Any) -> None:
        self._store = store
        self._path = path
        self._file = file

    def read(self, position: int, size: int) -> bytes:
        try:
            if self._file.closed:
                # Google's file counts as closed once the small object that it was opened with has come in whole.
                self._file = self._store.open(self._path)._file
            found: bytes = self._file.read_at(size, position)
        except OSError as error:
            told = _told(error, self._path)
            # Of an object that is gone since it was opened, pyarrow only says that the answer was no good.
            if told.errno == errno.EIO and not self._store.is_there(self._path):
                told = FileNotFoundError(errno.ENOENT, "there is no such object any more", self._path)
            raise told from None
        return found


def _new_amazon(settings: StoreSettings, path: str, bucket: str) -> Any:
    fs = _arrow(path)
    named = settings.endpoint_override or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    host, scheme = StoreSettings(endpoint_override=named).endpoint
    region = settings.region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region is None:
        region = "us-east-1" if host else _region_of(fs, bucket)  # another server has no regions
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
        raise _told(error, path) from None


def _region_of(fs: Any, bucket: str) -> str | None:
    """The region of a bucket, which Amazon tells everybody; None leaves it to the library's configuration."""
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
            "to read from an object store, pyarrow has to be installed: pip install 'tailrace[spark]'",
            path,
        ) from None
    return fs


# What the libraries' prose says, and what is said of it here.
_TOLD = (
    (r"NO_SUCH_BUCKET|bucket does not exist", errno.ENOENT, "there is no such bucket"),
    (r"Status\(NOT_FOUND", errno.ENOENT, "there is no such bucket or object"),
    (r"NO_SUCH_KEY|Path does not exist|No such file or directory", errno.ENOENT, "there is no such object"),
    (r"INVALID_ACCESS_KEY_ID|InvalidAccessKeyId", errno.EACCES, "the store does not know this access key"),
    (r"SIGNATURE_DOES_NOT_MATCH|SignatureDoesNotMatch", errno.EACCES, "the store says the secret key is wrong"),
    (r"EXPIRED_TOKEN|ExpiredToken", errno.EACCES, "the session token has expired"),
    (
        r"ACCESS_DENIED|HTTP status 40[13]|Permission denied|UNAUTHENTICATED|PERMISSION_DENIED",
        errno.EACCES,
        "the store refuses access with the credentials there are, or there are none",
    ),
    (r"HTTP status 301|PERMANENT_REDIRECT|PermanentRedirect", errno.EINVAL, "the bucket is in another region"),
    (r"NETWORK_CONNECTION|[Cc]ould not connect|UNAVAILABLE", errno.ECONNREFUSED, "the store cannot be reached"),
    (r"SLOW_DOWN|SlowDown|HTTP status 503", errno.EBUSY, f"the store was too busy {ATTEMPTS} times in a row"),
)


def _told(error: OSError, path: str) -> OSError:
    prose = str(error)
    for pattern, number, sentence in _TOLD:
        if re.search(pattern, prose):
            return OSError(number, sentence, path)
    if error.errno is not None and error.strerror is not None:
        return OSError(error.errno, error.strerror, path)
    # A request's number helps nobody who has no access to the store's own logs.
    return OSError(errno.EIO, re.sub(r"\s*\(Request ID: [^)]*\)", "", prose).strip(), path)
