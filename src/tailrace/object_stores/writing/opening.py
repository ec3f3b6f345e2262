"""Opens the objects of an address for writing."""

from __future__ import annotations

from tailrace.object_stores.settings import StoreSettings
from tailrace.object_stores.store_address import AMAZON, Place
from tailrace.object_stores.writing.gcs_blobs import GcsBlobs
from tailrace.object_stores.writing.s3_blobs import S3Blobs


def blobs_of(place: Place) -> S3Blobs | GcsBlobs:
    """Return the objects below an address such as s3://bucket/prefix."""
    scheme, _, path = place.path.partition("://")
    bucket, _, prefix = path.partition("/")
    settings = place.settings or StoreSettings()
    return S3Blobs(settings, bucket, prefix) if scheme in AMAZON else GcsBlobs(settings, bucket, prefix)
