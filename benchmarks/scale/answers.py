"""Requests about the metadata: Metadata for one topic, for a thousand, for all; DescribeTopicPartitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.scale.child import cpu_us, freeze_heap
from benchmarks.scale.member import PlayedCluster, open_member
from tailrace.broker.requests.request_context import ConnectionContext
from tailrace.protocol.headers import RequestHeader, write_request_header
from tailrace.protocol.messages import DescribeTopicPartitionsRequest, MetadataRequest

METADATA_VERSION = 13


def answers(directory: str) -> dict[str, float]:
    """Return the CPU microseconds from the frame to the encoded response, and the size of the response."""
    cluster = PlayedCluster()
    broker = open_member(Path(directory), cluster)
    freeze_heap()
    context = ConnectionContext(1)
    sizes: dict[str, int] = {}

    def ask(name: str, request: Any, version: int) -> None:
        header = write_request_header(RequestHeader(request.SCHEMA.api_key, version, 1, "scale"))
        broker.handle(memoryview(bytearray(header + request.encode(version))), context, cluster.now_ms)
        (reply,) = broker.take_replies()
        assert reply.parts is not None
        sizes[name] = sum(map(len, reply.parts))

    def ask_all_uncached() -> None:
        """Send the request for all topics without a cached response."""
        broker.services.encoded_topics.clear()
        ask("all", MetadataRequest(topics=None), METADATA_VERSION)

    names = list(broker.services.controller.image.topics)
    thousand = names[:: max(len(names) // 1_000, 1)][:1_000]
    wanted = MetadataRequest.MetadataRequestTopic
    page = DescribeTopicPartitionsRequest(response_partition_limit=2_000)
    found = {
        "one_us": cpu_us(lambda: ask("one", MetadataRequest(topics=[wanted(name=names[0])]), METADATA_VERSION)),
        "thousand_us": cpu_us(
            lambda: ask("thousand", MetadataRequest(topics=[wanted(name=name) for name in thousand]), METADATA_VERSION),
            times=5,
        ),
        "all_us": cpu_us(ask_all_uncached, times=2),
        "all_again_us": cpu_us(lambda: ask("all", MetadataRequest(topics=None), METADATA_VERSION), times=5),
        "page_us": cpu_us(lambda: ask("page", page, 0), times=5),
    }
    broker.abandon()
    return {**found, **{f"{name}_bytes": size for name, size in sizes.items()}}
