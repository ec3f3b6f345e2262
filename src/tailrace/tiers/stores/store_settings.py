"""The settings of remote stores, with the names of Kafka's LocalTieredStorage and of Aiven's plugin.

A setting is used, or has no effect here and is accepted, or must have its default because it asks for something that is
not supported. Any other name is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LOCAL_SETTINGS: Final = frozenset({"dir", "delete.enable"})
_LOCAL_WITHOUT_EFFECT: Final = frozenset({"delete.on.close", "transferer.class", "broker.id"})

AIVEN_SETTINGS: Final = frozenset(
    {
        "chunk.size", "compression.enabled", "key.prefix", "storage.backend.class",
        "storage.root",
        "storage.s3.bucket.name", "storage.s3.endpoint.url", "storage.s3.region",
        "storage.s3.multipart.upload.part.size", "storage.aws.access.key.id", "storage.aws.secret.access.key",
        "storage.gcs.bucket.name", "storage.gcs.endpoint.url",
    }
)  # fmt: skip
# Caches, metrics and details of libraries that Tailrace does not use.
_AIVEN_WITHOUT_EFFECT: Final = frozenset(
    {
        "compression.heuristic.enabled", "key.prefix.mask",
        "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms",
        "storage.overwrite.enabled",
        "storage.s3.api.call.attempt.timeout", "storage.s3.api.call.timeout",
        "storage.s3.legacy.md5.plugin.enabled", "storage.s3.path.style.access.enabled",
        "storage.aws.checksum.check.enabled",
        "storage.gcs.credentials.default", "storage.gcs.resumable.upload.chunk.size",
    }
)  # fmt: skip
_CACHES: Final = ("fetch.chunk.cache.", "fetch.manifest.cache.", "fetch.indexes.cache.")
# Settings that must have these values: the value, and the remedy.
_ONLY: Final = {
    "encryption.enabled": ("false", "segments cannot be encrypted: use the encryption of the bucket"),
    "segment.format": ("kafka", "only kafka is supported"),
    "custom.metadata.fields.include": ("", "custom metadata is not supported: leave it empty"),
    "storage.aws.certificate.check.enabled": ("true", "certificates are always checked"),
    "storage.s3.storage.class": ("STANDARD", "choose the storage class with a rule of the bucket"),
}
_REFUSED: Final = {
    "upload.rate.limit.bytes.per.second": "set remote.log.manager.copy.max.bytes.per.second instead",
    "storage.aws.credentials.provider.class": "credentials come from the settings or the environment",
    "storage.gcs.credentials.json": "set the environment variable GOOGLE_APPLICATION_CREDENTIALS instead",
    "storage.gcs.credentials.path": "set the environment variable GOOGLE_APPLICATION_CREDENTIALS instead",
}
_PREFIX: Final = "rsm.config."


class WrongStore(ValueError):
    """Settings that name no store. The text has the setting and its value."""


def check_local(settings: Mapping[str, str]) -> None:
    """Raise WrongStore for settings that Kafka's LocalTieredStorage does not have."""
    for name in settings:
        if name not in LOCAL_SETTINGS | _LOCAL_WITHOUT_EFFECT:
            raise WrongStore(
                f"{_PREFIX}{name} is not a setting of LocalTieredStorage, which has "
                f"{', '.join(sorted(LOCAL_SETTINGS | _LOCAL_WITHOUT_EFFECT))}"
            )


def check_aiven(settings: Mapping[str, str]) -> None:
    """Raise WrongStore for settings that Aiven's plugin does not have or that are not supported."""
    for name, value in settings.items():
        if name in _REFUSED:
            raise WrongStore(f"{_PREFIX}{name} is not supported: {_REFUSED[name]}")
        if name in _ONLY:
            wanted, remedy = _ONLY[name]
            if value.strip().lower() != wanted.lower():
                raise WrongStore(f"{_PREFIX}{name} is {value!r}; {remedy}")
        elif name.startswith("encryption."):
            raise WrongStore(f"{_PREFIX}{name} is not supported: {_ONLY['encryption.enabled'][1]}")
        elif name not in AIVEN_SETTINGS | _AIVEN_WITHOUT_EFFECT and not name.startswith(_CACHES):
            raise WrongStore(f"{_PREFIX}{name} is not a setting of Aiven's plugin; check its spelling, or remove it")


def required(settings: Mapping[str, str], name: str) -> str:
    value = settings.get(name, "").strip()
    if not value:
        raise WrongStore(f"{_PREFIX}{name} is missing")
    return value


def number(settings: Mapping[str, str], name: str, least: int, largest: int, default: int | None = None) -> int:
    if default is not None and name not in settings:
        return default
    text = required(settings, name)
    if not text.isdecimal() or not least <= int(text) <= largest:
        raise WrongStore(f"{_PREFIX}{name} is {text!r}; it must be a number of bytes from {least} to {largest}")
    return int(text)


def flag(settings: Mapping[str, str], name: str, default: str = "false") -> bool:
    value = settings.get(name, default).strip().lower()
    if value not in ("true", "false"):
        raise WrongStore(f"{_PREFIX}{name} is {value!r}; it must be true or false")
    return value == "true"
