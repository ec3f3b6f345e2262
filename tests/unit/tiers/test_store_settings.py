"""The settings of a broker name the store, as they do in Apache Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.log.disk.files import DiskFiles
from tailrace.tiers.stores.aiven.chunk_index import ChunkIndex, WrongManifest, decode_sizes, encode_sizes, unpack
from tailrace.tiers.stores.aiven.manifest import parse_manifest
from tailrace.tiers.stores.opening import AIVEN_CLASS, LOCAL_CLASS, open_store
from tailrace.tiers.stores.remote_store import IndexKind, RemoteResourceNotFound, RemoteStorageError
from tailrace.tiers.stores.store_settings import WrongStore
from tests.support.s3_server import KEYS, S3Server
from tests.support.source_rows import offsets, read
from tests.support.tier_makers import small_log
from tests.support.tiered_logs import copy_log

FILES = DiskFiles()
FILE = {"storage.backend.class": "io.aiven.kafka.tieredstorage.storage.filesystem.FileSystemStorage"}
S3 = {"storage.backend.class": "io.aiven.kafka.tieredstorage.storage.s3.S3Storage"}


def test_wrong_settings_are_refused_with_their_names() -> None:
    cases = [
        (None, {}, "remote.log.storage.manager.class.name is None"),
        (LOCAL_CLASS, {}, "rsm.config.dir is missing"),
        (AIVEN_CLASS, {}, "rsm.config.chunk.size is missing"),
        (AIVEN_CLASS, {"chunk.size": "0"}, "chunk.size is '0'"),
        (AIVEN_CLASS, {"chunk.size": "9", "encryption.enabled": "true"}, "segments cannot be encrypted"),
        (AIVEN_CLASS, {"chunk.size": "9", "encryption.key.pair.id": "x"}, "segments cannot be encrypted"),
        (AIVEN_CLASS, {"chunk.size": "9", "chunks.size": "9"}, "rsm.config.chunks.size is not a setting of Aiven's"),
        (AIVEN_CLASS, {"upload.rate.limit.bytes.per.second": "9"}, "copy.max.bytes.per.second instead"),
        (AIVEN_CLASS, {"storage.s3.storage.class": "GLACIER"}, "with a rule of the bucket"),
        (LOCAL_CLASS, {"dir": "/x", "chunk.size": "9"}, "rsm.config.chunk.size is not a setting of LocalTieredStorage"),
        (LOCAL_CLASS, {"dir": "/x", "delete.enable": "no"}, "rsm.config.delete.enable is 'no'"),
        (AIVEN_CLASS, {"chunk.size": "9", "segment.format": "iceberg"}, "only kafka is supported"),
        (AIVEN_CLASS, {"chunk.size": "9", "storage.backend.class": "x"}, "storage.backend.class is 'x'"),
        (AIVEN_CLASS, {"chunk.size": "9", **FILE}, "rsm.config.storage.root is missing"),
    ]
    for class_name, settings, message in cases:
        with pytest.raises(WrongStore, match=message):
            open_store(class_name, settings, FILES, lambda: 0)


def test_settings_without_effect_are_accepted(tmp_path: Path) -> None:
    kafkas = {"dir": str(tmp_path), "delete.on.close": "false", "transferer.class": "x", "broker.id": "1"}
    open_store(LOCAL_CLASS, kafkas, FILES, lambda: 0)
    aivens = {
        "chunk.size": "4194304",
        **FILE,
        "storage.root": str(tmp_path),
        "fetch.chunk.cache.size": "-1",
        "fetch.chunk.cache.class": "io.aiven.kafka.tieredstorage.fetch.cache.MemoryChunkCache",
        "encryption.enabled": "false",
        "metrics.num.samples": "2",
        "storage.overwrite.enabled": "true",
    }
    open_store(AIVEN_CLASS, aivens, FILES, lambda: 0)


def test_a_store_with_delete_enable_false_keeps_its_files(tmp_path: Path) -> None:
    one = open_store(LOCAL_CLASS, {"dir": str(tmp_path / "tier"), "delete.enable": "false"}, FILES, lambda: 0)
    (copied, *_) = copy_log(one, small_log(tmp_path / "topic-0"), FILES, str(tmp_path / "topic-0"))
    one.delete_segment(copied)
    assert one.fetch_segment(copied, 0)


@pytest.mark.parametrize("compress", ["false", "true"])
def test_a_bucket_has_the_objects_of_aivens_plugin(s3: S3Server, tmp_path: Path, compress: str) -> None:
    bucket = f"tier-of-a-broker-{compress}"
    s3.backend.create_bucket(bucket, "us-east-1")
    settings = {
        **S3,
        "storage.s3.bucket.name": bucket,
        "storage.s3.endpoint.url": s3.endpoint,
        "storage.s3.region": "us-east-1",
        "storage.aws.access.key.id": KEYS["accessKey"],
        "storage.aws.secret.access.key": KEYS["secretKey"],
        "key.prefix": "kafka/",
        "chunk.size": "1000",
        "compression.enabled": compress,
    }
    one = open_store(AIVEN_CLASS, settings, FILES, lambda: 0)
    log = small_log(tmp_path / "topic-0")
    copied = copy_log(one, log, FILES, str(tmp_path / "topic-0"))
    names = sorted(
        key.name for key in s3.backend.list_objects(s3.backend.get_bucket(bucket), None, None, None, None)[0]
    )
    stem = f"kafka/topic-{copied[0].segment_id.topic_id}/0/{0:020d}-{copied[0].segment_id.text}"
    assert names[:3] == [f"{stem}.indexes", f"{stem}.log", f"{stem}.rsm-manifest"]
    assert len(names) == 9
    whole = (tmp_path / "topic-0" / f"{0:020d}.log").read_bytes()
    assert one.fetch_segment(copied[0], 0) == whole
    for start, end in ((0, 1), (999, 1001), (1500, 2500), (len(whole) - 1, len(whole) + 50)):
        assert one.fetch_segment(copied[0], start, end) == whole[start:end]
    assert one.fetch_index(copied[0], IndexKind.OFFSET) == (tmp_path / "topic-0" / f"{0:020d}.index").read_bytes()
    with pytest.raises(RemoteResourceNotFound):
        one.fetch_index(copied[0], IndexKind.TRANSACTION)
    wanted = {"remote.path": f"s3://{bucket}/kafka", "subscribe": "topic", **s3.options}
    assert offsets(read(wanted)) == [*range(61), *range(62, 92)]
    one.delete_segment(copied[0])
    with pytest.raises(RemoteResourceNotFound):
        one.fetch_segment(copied[0], 0)
    one.delete_segment(copied[0])


def test_a_store_that_is_not_there_is_a_storage_error(s3: S3Server, tmp_path: Path) -> None:
    settings = {**S3, "storage.s3.bucket.name": "none", "storage.s3.endpoint.url": s3.endpoint, "chunk.size": "1000"}
    settings |= {"storage.aws.access.key.id": "a", "storage.aws.secret.access.key": "b"}
    one = open_store(AIVEN_CLASS, settings, FILES, lambda: 0)
    log = small_log(tmp_path / "topic-0")
    with pytest.raises(RemoteStorageError, match="no such bucket"):
        copy_log(one, log, FILES, str(tmp_path / "topic-0"))


def test_chunk_sizes_are_encoded_as_aivens_plugin_does() -> None:
    assert encode_sizes((10, 20, 30)) == bytes.fromhex("00000003 0000000a 01 00 0a 0000001e")
    for sizes in ((), (213,), (2**31 - 1,), (5, 5, 5), (1, 70_000, 3), (10, 20, 30)):
        assert decode_sizes(encode_sizes(sizes)) == sizes
    for data in (b"", b"\x00\x00\x00\x03", bytes.fromhex("7fffffff 00000000 01 00"), encode_sizes((1, 2, 3)) + b"x"):
        with pytest.raises(WrongManifest):
            decode_sizes(data)


def test_a_frame_that_is_too_large_is_refused() -> None:
    import zstandard

    with pytest.raises(WrongManifest, match="the limit is 10"):
        unpack(zstandard.ZstdCompressor().compress(bytes(1000)), 10)


def test_manifests_that_cannot_be_used_are_refused_with_the_reason() -> None:
    cases = {
        b"": "malformed",
        b"[]": "malformed",
        b'{"version":"2"}': "version 2",
        b'{"version":"1","encryption":{"dataKey":"a:b","aad":"b"}}': "encrypted segments are not supported",
        b'{"version":"1","chunkIndex":{"type":"fixed","originalChunkSize":0}}': ("no positions of indexes"),
    }
    for data, message in cases.items():
        with pytest.raises(WrongManifest, match=message):
            parse_manifest(data)
    with pytest.raises(WrongManifest, match="not possible"):
        ChunkIndex(0, 10)
