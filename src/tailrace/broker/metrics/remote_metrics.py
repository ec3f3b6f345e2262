"""Metrics of tiered storage. They exist only if the broker has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tailrace.broker.services import Services
from tailrace.broker.storage.remote.remote_logs import RemoteLogs
from tailrace.metrics.families import NO_LABELS, Family, Kind, Sample, counter, gauge, histogram_samples
from tailrace.tiers.remote_counters import RemoteCounters
from tailrace.tiers.remote_partition import RemotePartition
from tailrace.tiers.remote_segment import RemoteSegmentState

_TOPICS: Final = "kafka_server_brokertopicmetrics"
_COUNTED: Final = (
    ("remotecopybytes", "copied_bytes", "Bytes of segments copied to the remote store."),
    ("remotecopyrequests", "copy_requests", "Copies of segments to the remote store."),
    ("remotecopyerrors", "copy_errors", "Copies of segments that failed."),
    ("remotefetchbytes", "fetched_bytes", "Bytes of records read from the remote store."),
    ("remotefetchrequests", "fetch_requests", "Reads from the remote store, one for each partition of a fetch."),
    ("remotefetcherrors", "fetch_errors", "Reads from the remote store that failed."),
    ("remotedeleterequests", "delete_requests", "Deletions of segments in the remote store."),
    ("remotedeleteerrors", "delete_errors", "Deletions of segments that failed."),
)


def _copy_lag(one: RemotePartition) -> list[int]:
    """Return the sizes of the sealed segments that are not in the remote store yet."""
    return one.log.only_local_segments()[:-1] if one.is_leader and one.log.is_copied else []


def _delete_lag(one: RemotePartition) -> list[int]:
    """Return the sizes of the segments whose deletion has begun."""
    return [part.size for part in one.cache.all() if part.state is RemoteSegmentState.DELETE_SEGMENT_STARTED]


def _readable(one: RemotePartition) -> list[int]:
    return [part.size for part in one.cache.all() if part.state is RemoteSegmentState.COPY_SEGMENT_FINISHED]


_GAUGES: Final[tuple[tuple[str, str, Callable[[RemotePartition], int]], ...]] = (
    ("remotecopylagbytes", "Bytes of sealed segments that are not copied yet.", lambda one: sum(_copy_lag(one))),
    ("remotecopylagsegments", "Sealed segments that are not copied yet.", lambda one: len(_copy_lag(one))),
    ("remotedeletelagbytes", "Bytes of segments that are being deleted.", lambda one: sum(_delete_lag(one))),
    ("remotedeletelagsegments", "Segments that are being deleted.", lambda one: len(_delete_lag(one))),
    ("remotelogmetadatacount", "Remote segments that the metadata has.", lambda one: len(one.cache)),
    ("remotelogsizebytes", "Bytes of the segments that can be read.", lambda one: sum(_readable(one))),
)


def remote_families(services: Services) -> Iterator[Family]:
    logs, reads, calls = services.remote_logs, services.remote_reads, services.store_calls
    if logs is None or reads is None or calls is None:
        return
    yield from _of_topics(logs)
    manager = "kafka_log_remote_remotelogmanager"
    yield Family(
        f"{manager}_remotelogreaderfetchrateandtimems",
        Kind.HISTOGRAM,
        "Milliseconds that a read from the remote store took.",
        histogram_samples(reads.durations, NO_LABELS, unit=1_000_000),
    )
    pool = "org_apache_kafka_storage_internals_log_remotestoragethreadpool"
    yield gauge(f"{pool}_remotelogreadertaskqueuesize", "Reads that wait for a thread.", reads.queue_size)
    yield gauge(
        f"{pool}_remotelogreaderavgidle_percent", "Part of the reader threads that are idle now, 0 to 1.", reads.idle
    )
    yield counter(
        "kafka_server_delayedremotefetchmetrics_expires",
        "Fetches that ended before the remote store had responded.",
        reads.expired_fetches,
    )
    yield counter(
        "kafka_server_delayedremotelistoffsetsmetrics_expires",
        "Lookups by time that ended before the remote store had responded.",
        reads.expired_lookups,
    )
    yield counter("tailrace_remote_calls_ended", "Calls of the remote store that did not return in time.", calls.ended)


def _of_topics(logs: RemoteLogs) -> Iterator[Family]:
    together = RemoteCounters()
    for one in (logs.past, *logs.counters.values()):
        together.add(one)
    for name, attribute, help_text in _COUNTED:
        samples = [Sample(NO_LABELS, getattr(together, attribute))]
        samples += [Sample({"topic": topic}, getattr(one, attribute)) for topic, one in logs.counters.items()]
        yield Family(f"{_TOPICS}_{name}", Kind.COUNTER, help_text, samples)
    for name, help_text, value in _GAUGES:
        by_topic: dict[str, int] = {}
        for partition in logs:
            by_topic[partition.key.topic] = by_topic.get(partition.key.topic, 0) + value(partition)
        samples = [Sample(NO_LABELS, sum(by_topic.values()))]
        samples += [Sample({"topic": topic}, size) for topic, size in by_topic.items()]
        yield Family(f"{_TOPICS}_{name}", Kind.GAUGE, help_text, samples)
