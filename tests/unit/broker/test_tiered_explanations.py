"""`tailrace explain fetch` shows the walk to records that are only in the remote store."""

from __future__ import annotations

from typing import Any

from tailrace.cli.serving.explain_fetch import fetch_text
from tests.support.tiered_node import TOPIC, TieredNode


def explained(node: TieredNode, offset: int) -> Any:
    found: list[Any] = []
    query = {"topic": TOPIC, "offset": str(offset)}
    node.broker.explain_fetch(query, node.now_ms, found.append)
    return found[0]


def test_a_remote_offset_is_explained_with_its_segment_and_index() -> None:
    node = TieredNode()
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(20)
    node.run_tasks()
    local_start = node.log().local_start_offset
    walk = explained(node, 3)
    remote = walk["partitions"][0]["remote"]
    assert remote["start_offset"] <= 3 <= remote["end_offset"] < local_start
    assert any(remote["segment_id"] in name for name in node.remote_files())
    assert remote["index_position"] is not None, "the read has fetched the index"
    text = "\n".join(fetch_text(walk))
    assert f"remote: the local log starts at offset {local_start}" in text
    assert f"offsets {remote['start_offset']} to {remote['end_offset']}" in text
    local = explained(node, local_start)["partitions"][0]
    assert local["remote"] is None
    assert local["read"] is not None
