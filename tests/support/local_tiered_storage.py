"""Kafka's LocalTieredStorage: the jar that has it, and the class itself, driven through the log oracle."""

from __future__ import annotations

import base64
import functools
from pathlib import Path

from tailrace.tiers.remote_segment import RemoteSegment
from tailrace.tiers.stores.remote_store import IndexKind, SegmentFiles
from tests.support.cache import make_once, run_to_fetch
from tests.support.kafka_install import kafka_installation
from tests.support.log_oracle import LogOracle

CLASS = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"


@functools.cache
def tiered_storage_jar() -> Path:
    """Return Kafka's published test jar of the module `storage`, fetched once."""
    installation = kafka_installation()
    name = f"kafka-storage-{installation.version}-test.jar"

    def fetch(directory: Path) -> None:
        artifact = f"-Dartifact=org.apache.kafka:kafka-storage:{installation.version}:jar:test"
        run_to_fetch(name, "mvn", "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={directory}")

    return make_once(installation.cache / "tiered-storage", fetch) / name


class KafkaTier:
    """LocalTieredStorage on a folder, with the verbs of a RemoteStore."""

    def __init__(self, oracle: LogOracle, directory: Path) -> None:
        self._oracle = oracle
        oracle.call("tier_open", jar=str(tiered_storage_jar()), directory=str(directory))

    def copy_segment(self, segment: RemoteSegment, files: SegmentFiles) -> None:
        self._oracle.call(
            "tier_copy",
            segment=_described(segment),
            log=files.log,
            offset_index=files.offset_index,
            time_index=files.time_index,
            transaction_index=files.transaction_index,
            producer_snapshot=files.producer_snapshot,
            leader_epochs=base64.b64encode(files.leader_epochs).decode(),
        )

    def fetch_segment(self, segment: RemoteSegment, start: int, end: int) -> bytes:
        """Return a part of the log. As in Kafka, `end` is inclusive."""
        found = self._oracle.call("tier_fetch_segment", segment=_described(segment), start=start, end=end)
        return base64.b64decode(found)

    def fetch_index(self, segment: RemoteSegment, kind: IndexKind) -> bytes:
        return base64.b64decode(self._oracle.call("tier_fetch_index", segment=_described(segment), kind=kind.name))

    def delete_segment(self, segment: RemoteSegment) -> None:
        self._oracle.call("tier_delete", segment=_described(segment))

    def all_segments(self) -> list[str]:
        """Return the ids of the segments that Kafka's own traversal of the folder visits."""
        return sorted(self._oracle.call("tier_segments"))


def _described(segment: RemoteSegment) -> dict[str, object]:
    one = segment.segment_id
    return {
        "topic_id": str(one.topic_id),
        "topic": one.topic,
        "partition": one.partition,
        "id": one.text,
        "start_offset": segment.start_offset,
        "end_offset": segment.end_offset,
        "size": segment.size,
        "epochs": [{"epoch": epoch, "start_offset": start} for epoch, start in segment.leader_epochs],
    }
