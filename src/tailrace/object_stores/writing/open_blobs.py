"""Opens the objects of an address for writing."""

from __future__ import annotations

from tailrace.object_stores.settings import StoreSettings
from tailrace.object_stores.store_address import AMAZON, Place
from tailrace.object_stores.writing.gcs_blobs import GcsBlobs
from tailrace.object_stores.writing.s3_blobs import PART_BYTES, S3Blobs


def blobs_of(place: Place, *, part_bytes: int = PART_BYTES) -> S3Blobs | GcsBlobs:
    """Return access to the objects below an address such as s3://bucket/prefix. Large objects are written in parts."""
    scheme, _, path = place.path.partition("://")
    bucket, _, prefix = path.partition("/")
    settings = place.settings or StoreSettings()
    make = S3Blobs if scheme in AMAZON else GcsBlobs
    return make(settings, bucket, prefix, part_bytes=part_bytes)
