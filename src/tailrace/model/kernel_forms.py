"""The forms of the kernels: compiled if there was a C compiler at installation, otherwise interpreted.

Both forms give the same results. Interpreted kernels are slower, so `tailrace --version`, the first line of `serve` and
the metric tailrace_build_info report which form runs. The modules of the request path are compiled only in a wheel.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from typing import Final

KERNELS: Final = (
    "tailrace.records.kernels",
    "tailrace.records.header_kernels",
    "tailrace.records.checks.check_kernels",
    "tailrace.records.codecs.codec_kernels",
    "tailrace.records.columnar.columns",
    "tailrace.records.columnar.column_encoder",
    "tailrace.records.columnar.json_lines",
    "tailrace.log.compaction.cleaner_kernels",
    "tailrace.log.recovery.scan_kernels",
    "tailrace.log.segments.indexes.index_kernels",
    "tailrace.log.replicated.replicated_kernels",
    "tailrace.coordinator.offsets.offset_kernels",
    "tailrace.protocol.flat.read_kernels",
    "tailrace.protocol.flat.write_kernels",
)

# The walks of Produce, Fetch (also of a follower) and OffsetCommit, and the loop around them. A wheel has them
# compiled. In a checkout they run interpreted, so that no old build hides a changed source: decision 39.
REQUEST_PATH: Final = (
    "tailrace.broker.coordination.partition_writer",
    "tailrace.broker.dispatcher",
    "tailrace.broker.handling.appends",
    "tailrace.broker.handling.flat_requests",
    "tailrace.broker.handling.request_decoder",
    "tailrace.broker.handling.round",
    "tailrace.broker.replies",
    "tailrace.broker.requests.data.fetch",
    "tailrace.broker.requests.data.produce",
    "tailrace.broker.requests.groups.group_topics",
    "tailrace.broker.requests.offsets.commit_plan",
    "tailrace.broker.requests.offsets.offset_commit",
    "tailrace.coordinator.offsets.offset_commits",
    "tailrace.coordinator.runtime",
    "tailrace.coordinator.shard_writer",
    "tailrace.fetch.byte_budget",
    "tailrace.fetch.context",
    "tailrace.fetch.delayed_fetch",
    "tailrace.fetch.fetch",
    "tailrace.fetch.fetch_plan",
    "tailrace.fetch.fetches",
    "tailrace.fetch.read",
    "tailrace.fetch.request_context",
    "tailrace.fetch.response",
    "tailrace.fetch.session",
    "tailrace.log.append",
    "tailrace.log.leader_epochs",
    "tailrace.log.reading.small_read",
    "tailrace.log.replicated.replicated_batches",
    "tailrace.log.segments.indexes.offset_index",
    "tailrace.log.segments.segment",
    "tailrace.log.segments.segment_list",
    "tailrace.protocol.flat.produce",
    "tailrace.protocol.headers",
    "tailrace.replication.delayed_produce",
    "tailrace.replication.fetching.leader_session",
    "tailrace.replication.fetching.replica_fetcher",
    "tailrace.replication.follower",
    "tailrace.replication.follower_progress",
    "tailrace.replication.hosted_partitions",
    "tailrace.replication.leader",
    "tailrace.replication.partition",
    "tailrace.replication.produce",
    "tailrace.replication.topic_traffic",
    "tailrace.server.connections.connection",
    "tailrace.server.loop.broker_deadline",
    "tailrace.server.loop.loop",
    "tailrace.server.loop.loop_timers",
    "tailrace.server.loop.turn",
    "tailrace.server.metrics.request_meter",
    "tailrace.server.peers.peer_connection",
    "tailrace.server.peers.peers",
    "tailrace.server.receiving.frame_input",
    "tailrace.server.sending.response_writer",
    "tailrace.server.sending.sender",
    "tailrace.waiting.outbox",
    "tailrace.waiting.purgatory",
)


@cache
def interpreted_kernels() -> tuple[str, ...]:
    """Return the names of the kernels that are not compiled."""
    return _interpreted(KERNELS)


def is_request_path_compiled() -> bool:
    return not _interpreted(REQUEST_PATH)


def _interpreted(names: Iterable[str]) -> tuple[str, ...]:
    specs = {name: find_spec(name) for name in names}
    return tuple(name for name, spec in specs.items() if spec is None or (spec.origin or "").endswith(".py"))


def describe_kernels() -> str:
    missing = len(interpreted_kernels())
    if not missing:
        return "compiled kernels"
    if missing == len(KERNELS):
        return "interpreted kernels"
    return f"{missing} of {len(KERNELS)} kernels interpreted"
