"""A broker whose settings name a store in the layout of Aiven's plugin, in a folder and in a bucket."""

from __future__ import annotations

import pytest

from tailrace.model.topic_config import InvalidConfig
from tailrace.tiers.stores.opening import AIVEN_CLASS
from tests.support.s3_server import KEYS, S3Server
from tests.support.source_rows import offsets, read
from tests.support.tiered_node import SETTINGS, TOPIC, TieredNode, keys_of

STORAGE = "io.aiven.kafka.tieredstorage.storage"


def settings(**given: str) -> dict[str, str]:
    """Return the settings of a broker with Aiven's class; `a_b` is rsm.config.a.b."""
    names = {f"rsm.config.{name.replace('_', '.')}": value for name, value in given.items()}
    kept = {name: value for name, value in SETTINGS.items() if not name.startswith("rsm.config.")}
    return {**kept, "remote.log.storage.manager.class.name": AIVEN_CLASS, "rsm.config.chunk.size": "1000", **names}


class AivenNode(TieredNode):
    """A node without the settings of a local store."""

    @staticmethod
    def defaults() -> dict[str, str]:
        return {}


def consumed(node: TieredNode) -> list[int]:
    found: list[int] = []
    while len(found) < node.log().high_watermark:
        answer = node.fetch(len(found))
        assert answer.error_code == 0
        found += [key for key in keys_of(answer.records) if key >= len(found)]
    return found


def copied(static: dict[str, str]) -> TieredNode:
    node = AivenNode(static=static)
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(20)
    node.run_tasks()
    assert node.log().local_start_offset > 10
    return node


@pytest.mark.parametrize("compressed", ["false", "true"])
def test_a_broker_copies_to_a_folder_in_aivens_layout_and_reads_it(compressed: str) -> None:
    static = settings(
        storage_backend_class=f"{STORAGE}.filesystem.FileSystemStorage",
        storage_root="/remote",
        key_prefix="tier/",
        compression_enabled=compressed,
    )
    node = copied(static)
    assert consumed(node) == list(range(20))
    (folder,) = node.files.entries("/remote/tier")
    names = [one.name for one in node.files.entries(f"/remote/tier/{folder.name}/0")]
    assert {name.partition(".")[2] for name in names} == {"log", "indexes", "rsm-manifest"}
    assert node.delete() == 0
    node.run_tasks()
    assert node.files.entries(f"/remote/tier/{folder.name}/0") == []


def test_a_broker_copies_to_a_bucket_in_aivens_layout_and_reads_it(s3: S3Server) -> None:
    s3.backend.create_bucket("broker-tier", "us-east-1")
    static = settings(
        storage_backend_class=f"{STORAGE}.s3.S3Storage",
        storage_s3_bucket_name="broker-tier",
        storage_s3_endpoint_url=s3.endpoint,
        storage_s3_region="us-east-1",
        storage_aws_access_key_id=KEYS["accessKey"],
        storage_aws_secret_access_key=KEYS["secretKey"],
    )
    node = copied(static)
    assert consumed(node) == list(range(20))
    end = node.log().highest_remote_offset + 1
    wanted = {"remote.path": "s3://broker-tier", "subscribe": TOPIC, **s3.options}
    assert offsets(read(wanted)) == list(range(end))
    node.broker.close(node.now_ms)
    again = AivenNode(node.files, static, now_ms=node.now_ms + 1_000)
    again.tick(100)
    assert consumed(again) == list(range(20))


def test_a_broker_does_not_start_with_settings_of_an_unknown_store() -> None:
    with pytest.raises(InvalidConfig, match=r"class\.name is 'com\.example\.Store'; it must be"):
        TieredNode(static={"remote.log.storage.manager.class.name": "com.example.Store"})
    with pytest.raises(InvalidConfig, match=r"rsm\.config\.folder is not a setting of LocalTieredStorage"):
        TieredNode(static={"rsm.config.folder": "/remote"})
    with pytest.raises(InvalidConfig, match=r"encryption\.enabled is 'true'; segments cannot be encrypted"):
        AivenNode(static=settings(encryption_enabled="true"))
