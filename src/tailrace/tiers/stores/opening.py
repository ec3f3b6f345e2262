"""Opens the remote store that the settings of a broker name.

The classes are those that the same settings name in Apache Kafka, so that a cluster can have brokers of both kinds:

- `org.apache.kafka.server.log.remote.storage.LocalTieredStorage`: a folder, `dir`
- `io.aiven.kafka.tieredstorage.RemoteStorageManager`: a folder or bucket, `storage.backend.class` and `storage.*`

The settings are those with the prefix `rsm.config.`, without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tailrace.log.disk.files import Files
from tailrace.object_stores.settings import StoreSettings
from tailrace.object_stores.store_address import Place
from tailrace.object_stores.writing.open_blobs import blobs_of
from tailrace.object_stores.writing.s3_blobs import PART_BYTES
from tailrace.tiers.stores.aiven.aiven_store import AivenStore
from tailrace.tiers.stores.aiven.blobs import Blobs, DiskBlobs
from tailrace.tiers.stores.local_store import LocalStore
from tailrace.tiers.stores.remote_store import RemoteStore
from tailrace.tiers.stores.store_settings import WrongStore, check_aiven, check_local, flag, number, required

LOCAL_CLASS: Final = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
AIVEN_CLASS: Final = "io.aiven.kafka.tieredstorage.RemoteStorageManager"
_BACKENDS: Final = {
    "io.aiven.kafka.tieredstorage.storage.filesystem.FileSystemStorage": "file",
    "io.aiven.kafka.tieredstorage.storage.s3.S3Storage": "s3",
    "io.aiven.kafka.tieredstorage.storage.gcs.GcsStorage": "gs",
}
_CHUNK_MAX: Final = 1024 * 1024 * 1024 - 1
_PART_LIMITS: Final = (5 * 1024 * 1024, 2**31 - 1)


def open_store(
    class_name: str | None, settings: Mapping[str, str], files: Files, clock_ms: Callable[[], int]
) -> RemoteStore:
    """Return the store that a class name and its settings name. Raise WrongStore if there is none."""
    if class_name == LOCAL_CLASS:
        check_local(settings)
        return LocalStore(
            required(settings, "dir"), files, clock_ms, deletes=flag(settings, "delete.enable", default="true")
        )
    if class_name == AIVEN_CLASS:
        check_aiven(settings)
        return _aiven(settings, files, clock_ms)
    raise WrongStore(
        f"remote.log.storage.manager.class.name is {class_name!r}; it must be {LOCAL_CLASS} (a folder) or "
        f"{AIVEN_CLASS} (a folder or bucket)"
    )


def _aiven(settings: Mapping[str, str], files: Files, clock_ms: Callable[[], int]) -> RemoteStore:
    chunk_size = number(settings, "chunk.size", 1, _CHUNK_MAX)
    return AivenStore(
        _backend(settings, files),
        files,
        clock_ms,
        prefix=settings.get("key.prefix", ""),
        chunk_size=chunk_size,
        compress=flag(settings, "compression.enabled"),
    )


def _backend(settings: Mapping[str, str], files: Files) -> Blobs:
    name = required(settings, "storage.backend.class")
    kind = _BACKENDS.get(name)
    if kind == "file":
        return DiskBlobs(required(settings, "storage.root").rstrip("/"), files)
    if kind == "s3":
        bucket = required(settings, "storage.s3.bucket.name")
        given = StoreSettings(
            endpoint_override=settings.get("storage.s3.endpoint.url"),
            region=settings.get("storage.s3.region"),
            access_key=settings.get("storage.aws.access.key.id"),
            secret_key=settings.get("storage.aws.secret.access.key"),
        )
        part_bytes = number(settings, "storage.s3.multipart.upload.part.size", *_PART_LIMITS, default=PART_BYTES)
        return blobs_of(Place(f"s3://{bucket}", given), part_bytes=part_bytes)
    if kind == "gs":
        bucket = required(settings, "storage.gcs.bucket.name")
        # An endpoint of one's own is an emulator, which has no credentials.
        endpoint = settings.get("storage.gcs.endpoint.url")
        return blobs_of(Place(f"gs://{bucket}", StoreSettings(endpoint_override=endpoint, anonymous=bool(endpoint))))
    raise WrongStore(f"rsm.config.storage.backend.class is {name!r}; it must be one of {', '.join(_BACKENDS)}")
