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
from tailrace.object_stores.writing.opening import blobs_of
from tailrace.tiers.stores.aiven.aiven_store import AivenStore
from tailrace.tiers.stores.aiven.blobs import Blobs, DiskBlobs
from tailrace.tiers.stores.local_store import LocalStore
from tailrace.tiers.stores.remote_store import RemoteStore

LOCAL_CLASS: Final = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
AIVEN_CLASS: Final = "io.aiven.kafka.tieredstorage.RemoteStorageManager"
_BACKENDS: Final = {
    "io.aiven.kafka.tieredstorage.storage.filesystem.FileSystemStorage": "file",
    "io.aiven.kafka.tieredstorage.storage.s3.S3Storage": "s3",
    "io.aiven.kafka.tieredstorage.storage.gcs.GcsStorage": "gs",
}
_CHUNK_MAX: Final = 1024 * 1024 * 1024


class WrongStore(ValueError):
    """Settings that name no store. The text has the setting and its value."""


def open_store(
    class_name: str | None, settings: Mapping[str, str], files: Files, clock_ms: Callable[[], int]
) -> RemoteStore:
    """Return the store that a class name and its settings name. Raise WrongStore if there is none."""
    if class_name == LOCAL_CLASS:
        return LocalStore(_required(settings, "dir"), files, clock_ms)
    if class_name == AIVEN_CLASS:
        return _aiven(settings, files, clock_ms)
    raise WrongStore(
        f"remote.log.storage.manager.class.name is {class_name!r}; it must be {LOCAL_CLASS} (a folder) or "
        f"{AIVEN_CLASS} (a folder or bucket)"
    )


def _aiven(settings: Mapping[str, str], files: Files, clock_ms: Callable[[], int]) -> RemoteStore:
    if _flag(settings, "encryption.enabled"):
        raise WrongStore("encryption.enabled is true; segments cannot be encrypted: use the encryption of the bucket")
    if settings.get("segment.format", "kafka") != "kafka":
        raise WrongStore(f"segment.format is {settings['segment.format']!r}; only kafka is supported")
    if settings.get("custom.metadata.fields.include", ""):
        raise WrongStore("custom.metadata.fields.include is set; custom metadata is not supported: leave it empty")
    text = _required(settings, "chunk.size")
    if not text.isdecimal() or not 0 < int(text) <= _CHUNK_MAX:
        raise WrongStore(f"chunk.size is {text!r}; it must be a number of bytes from 1 to {_CHUNK_MAX}")
    return AivenStore(
        _backend(settings, files),
        files,
        clock_ms,
        prefix=settings.get("key.prefix", ""),
        chunk_size=int(text),
        compress=_flag(settings, "compression.enabled"),
    )


def _backend(settings: Mapping[str, str], files: Files) -> Blobs:
    name = _required(settings, "storage.backend.class")
    kind = _BACKENDS.get(name)
    if kind == "file":
        return DiskBlobs(_required(settings, "storage.root").rstrip("/"), files)
    if kind == "s3":
        bucket = _required(settings, "storage.s3.bucket.name")
        given = StoreSettings(
            endpoint_override=settings.get("storage.s3.endpoint.url"),
            region=settings.get("storage.s3.region"),
            access_key=settings.get("storage.aws.access.key.id"),
            secret_key=settings.get("storage.aws.secret.access.key"),
        )
        return blobs_of(Place(f"s3://{bucket}", given))
    if kind == "gs":
        bucket = _required(settings, "storage.gcs.bucket.name")
        # An endpoint of one's own is an emulator, which has no credentials.
        endpoint = settings.get("storage.gcs.endpoint.url")
        return blobs_of(Place(f"gs://{bucket}", StoreSettings(endpoint_override=endpoint, anonymous=bool(endpoint))))
    raise WrongStore(f"storage.backend.class is {name!r}; it must be one of {', '.join(_BACKENDS)}")


def _required(settings: Mapping[str, str], name: str) -> str:
    value = settings.get(name, "").strip()
    if not value:
        raise WrongStore(f"rsm.config.{name} is missing")
    return value


def _flag(settings: Mapping[str, str], name: str) -> bool:
    value = settings.get(name, "false").strip().lower()
    if value not in ("true", "false"):
        raise WrongStore(f"{name} is {value!r}; it must be true or false")
    return value == "true"
