"""Metrics of the broker, as families of samples under the names that Kafka's dashboards use.

This module stores no values. Counters live in the services that count, and gauges are computed when they are read.
`docs/reference/metrics.md` lists the names with Kafka's MBeans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from tailrace.broker.metrics.remote_metrics import remote_families
from tailrace.broker.metrics.replication_metrics import replication_families
from tailrace.broker.metrics.share_metrics import share_families
from tailrace.broker.services import Services
from tailrace.log.partition_log import PartitionLog
from tailrace.metrics.families import NO_LABELS, Family, Kind, Labels, Sample, counter, gauge, histogram_samples
from tailrace.model.errors import ErrorCode
from tailrace.protocol.api_keys import api
from tailrace.replication.topic_traffic import TopicTraffic

RUNNING: Final = 3  # in Kafka's BrokerState
_OWNERS_MAX: Final = 100
_TRAFFIC: Final = (
    ("messagesin", "messages_in", "Records appended for clients."),
    ("bytesin", "bytes_in", "Bytes of records appended for clients."),
    ("bytesout", "bytes_out", "Bytes of records sent to consumers."),
    ("bytesrejected", "bytes_rejected", "Bytes of records refused because they are larger than max.message.bytes."),
    ("totalproducerequests", "produce_requests", "Requested appends, one for each partition of a Produce request."),
    ("totalfetchrequests", "fetch_requests", "Reads of a partition for Fetch requests."),
    ("failedproducerequests", "failed_produce_requests", "Appends that failed or whose records were refused."),
    ("failedfetchrequests", "failed_fetch_requests", "Reads of a partition that failed unexpectedly."),
)
_LOG_GAUGES: Final[tuple[tuple[str, str, Callable[[PartitionLog], int]], ...]] = (
    ("kafka_log_log_size", "Bytes of the log.", lambda log: log.size),
    ("kafka_log_log_numlogsegments", "Segments of the log.", lambda log: len(log.segments)),
    ("kafka_log_log_logstartoffset", "First offset of the log.", lambda log: log.log_start_offset),
    ("kafka_log_log_logendoffset", "Offset of the next record.", lambda log: log.log_end_offset),
    ("tailrace_log_high_watermark", "Offset up to which consumers may read.", lambda log: log.high_watermark),
    (
        "kafka_cluster_partition_laststableoffsetlag",
        "Offsets between the last stable offset and the high watermark, hidden from read_committed consumers.",
        lambda log: log.high_watermark - log.last_stable_offset,
    ),
)


def broker_families(services: Services, now_ms: int) -> Iterator[Family]:
    yield from _traffic(services)
    yield Family(
        "kafka_network_requestmetrics_errors", Kind.COUNTER, "Error codes in responses to clients.", _errors(services)
    )
    yield services.internal_errors.family()
    yield from _quotas(services, now_ms)
    yield from _waiting(services)
    yield from _coordinators(services)
    yield from share_families(services.shares)
    if services.telemetry is not None:
        yield from services.telemetry.families(now_ms)
    yield from _replicas(services)
    yield from _isr(services)
    yield from replication_families(services, now_ms)
    yield from remote_families(services)
    yield from _controller(services)
    yield from _directories(services)
    yield from _moves(services)
    yield from _cleaner(services, now_ms)
    for name, help_text, value in _LOG_GAUGES:
        yield Family(name, Kind.GAUGE, help_text, _of_logs(services, value))


# Requests


def _traffic(services: Services) -> Iterator[Family]:
    hosted = services.partitions
    together = TopicTraffic()
    for traffic in (hosted.past_traffic, *hosted.traffic.values()):
        together.add(traffic)
    for name, attribute, help_text in _TRAFFIC:
        samples = [Sample(NO_LABELS, getattr(together, attribute))]
        samples += [Sample({"topic": topic}, getattr(one, attribute)) for topic, one in hosted.traffic.items()]
        yield Family(f"kafka_server_brokertopicmetrics_{name}", Kind.COUNTER, help_text, samples)
    yield counter(
        "kafka_server_brokertopicmetrics_replicationbytesin",
        "Bytes of records fetched from leaders.",
        together.replication_bytes_in,
    )
    yield counter(
        "kafka_server_brokertopicmetrics_replicationbytesout",
        "Bytes of records sent to followers.",
        together.replication_bytes_out,
    )


def _errors(services: Services) -> Iterator[Sample]:
    for key, codes in services.replies.errors.items():
        for code, count in codes.items():
            yield Sample({"request": api(key).name, "error": ErrorCode(code).name}, count)


def _quotas(services: Services, now_ms: int) -> Iterator[Family]:
    """Yield the usage of quotas that are set, as in Kafka: the busiest clients of the last seconds."""
    throttling = services.throttling
    for name, used, words, quota in (
        ("produce", "byte_rate", "Bytes a second that clients produce", throttling.produce),
        ("fetch", "byte_rate", "Bytes a second that clients fetch", throttling.fetch),
        ("request", "request_time", "Percentage of a thread's time that requests of clients take", throttling.request),
    ):
        used_by = quota.used(now_ms) if quota.is_enabled else ()
        owners = sorted(used_by, key=lambda one: one.per_second, reverse=True)[:_OWNERS_MAX]
        labels: list[Labels] = [{"user": one.owner[0], "client_id": one.owner[1]} for one in owners]
        rates = [Sample(shown, one.per_second) for shown, one in zip(labels, owners, strict=True)]
        pauses = [Sample(shown, one.pause_ms) for shown, one in zip(labels, owners, strict=True)]
        yield Family(f"kafka_server_{name}_{used}", Kind.GAUGE, f"{words}, by user and client id of the quota.", rates)
        yield Family(
            f"kafka_server_{name}_throttle_time", Kind.GAUGE, "Milliseconds that throttled connections pause.", pauses
        )


def _waiting(services: Services) -> Iterator[Family]:
    kinds = {"Produce": 0, "Fetch": 0, "DeleteRecords": 0}
    for name, waiting in services.purgatory.waiting_by_kind().items():
        # Class names of operations carry a prefix.
        kind = name.removeprefix("Delayed").removeprefix("Waiting").removeprefix("Replica")
        kinds[kind] = kinds.get(kind, 0) + waiting
    purgatory = services.purgatory.statistics()
    yield Family(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        Kind.GAUGE,
        "Requests that wait in the purgatory.",
        [Sample({"delayedOperation": kind}, waiting) for kind, waiting in kinds.items()],
    )
    yield counter(
        "tailrace_purgatory_completed", "Waiting requests that completed before their timeout.", purgatory.completed
    )
    yield counter("tailrace_purgatory_expired", "Waiting requests that timed out.", purgatory.expired)
    sessions = services.fetches.sessions.statistics()
    prefix = "kafka_server_fetchsessioncache"
    yield gauge(f"{prefix}_numincrementalfetchsessions", "Cached fetch sessions.", sessions.sessions)
    yield gauge(f"{prefix}_numincrementalfetchpartitionscached", "Partitions in fetch sessions.", sessions.partitions)
    yield counter(
        f"{prefix}_incrementalfetchsessionevictions",
        "Fetch sessions evicted to make room for others.",
        sessions.evictions,
    )


def _coordinators(services: Services) -> Iterator[Family]:
    runtimes = (services.groups.runtime, services.transactions.coordinator.runtime, services.share_coordinator.runtime)
    for name, attribute, help_text in (
        ("failed_operations", "operations", "Requests and timers of a coordinator that failed unexpectedly."),
        ("skipped_records", "skipped", "Records that a coordinator could not read while it was loading."),
        ("reloads", "reloads", "Partitions loaded again, because an appended record could not be replayed."),
    ):
        samples = [Sample({"topic": one.topic}, getattr(one.failures, attribute)) for one in runtimes]
        yield Family(f"tailrace_coordinator_{name}", Kind.COUNTER, help_text, samples)


# Partitions


def _replicas(services: Services) -> Iterator[Family]:
    hosted = list(services.partitions)
    leaders = [(one, one.leader) for one in hosted if one.leader is not None]
    prefix = "kafka_server_replicamanager"
    yield gauge(f"{prefix}_partitioncount", "Partitions hosted here.", len(hosted))
    yield gauge(f"{prefix}_leadercount", "Partitions led from here.", len(leaders))
    yield gauge(
        f"{prefix}_underreplicatedpartitions",
        "Partitions led from here with replicas outside the ISR.",
        sum(len(leader.isr.committed) < len(one.replicas) for one, leader in leaders),
    )
    yield gauge(
        f"{prefix}_underminisrpartitioncount",
        "Partitions led from here whose ISR is below min.insync.replicas, so that acks=all is refused.",
        sum(leader.is_under_min_isr for _, leader in leaders),
    )
    yield gauge(
        f"{prefix}_atminisrpartitioncount",
        "Partitions led from here whose ISR is exactly min.insync.replicas.",
        sum(len(leader.isr.committed) == leader.min_isr for _, leader in leaders),
    )
    yield gauge(
        f"{prefix}_reassigningpartitions",
        "Partitions led from here that are being reassigned.",
        sum(bool(one.adding or one.removing) for one, _ in leaders),
    )
    yield gauge(f"{prefix}_offlinereplicacount", "Replicas whose disk failed.", len(services.partitions.offline))
    yield gauge(
        f"{prefix}_produceridcount",
        "Producers whose state is kept.",
        sum(len(one.log.producers.producers) for one in hosted),
    )


def _isr(services: Services) -> Iterator[Family]:
    yield gauge(
        "kafka_server_replicafetchermanager_maxlag",
        "Largest lag, in records, of a follower on this broker behind its leader's high watermark.",
        0 if services.replication is None else services.replication.fetchers.max_lag,
    )
    changes = services.replicas.isr_counts
    prefix = "kafka_server_replicamanager"
    yield counter(f"{prefix}_isrshrinks", "Times that replicas left an ISR.", changes.shrinks)
    yield counter(f"{prefix}_isrexpands", "Times that replicas joined an ISR.", changes.expands)
    yield counter(f"{prefix}_failedisrupdates", "ISR changes that the controller refused.", changes.failed)
    leaders = [(one, one.leader) for one in services.partitions if one.leader is not None]
    labels: list[Labels] = [{"topic": one.key.topic, "partition": str(one.key.partition)} for one, _ in leaders]
    for name, words, values in (
        (
            "underreplicated",
            "1 if a replica is outside the ISR.",
            [len(two.isr.committed) < len(one.replicas) for one, two in leaders],
        ),
        ("underminisr", "1 if acks=all is refused.", [two.is_under_min_isr for _, two in leaders]),
        ("insyncreplicascount", "Replicas in the ISR.", [len(two.isr.committed) for _, two in leaders]),
    ):
        samples = [Sample(shown, int(value)) for shown, value in zip(labels, values, strict=True)]
        yield Family(f"kafka_cluster_partition_{name}", Kind.GAUGE, words, samples)


def _controller(services: Services) -> Iterator[Family]:
    image = services.controller.image
    partitions = [state for _, _, state in image.partitions()]
    prefix = "kafka_controller_kafkacontroller"
    yield gauge("kafka_server_kafkaserver_brokerstate", "State of the broker; 3 is running.", RUNNING)
    is_here = int(services.controller.leader_id == services.controller.node_id)
    yield gauge(f"{prefix}_activecontrollercount", "1 if this node is the active controller.", is_here)
    yield gauge(f"{prefix}_activebrokercount", "Registered brokers that are not fenced.", len(image.unfenced_brokers()))
    yield gauge(
        f"{prefix}_fencedbrokercount",
        "Registered brokers that are fenced.",
        len(image.brokers) - len(image.unfenced_brokers()),
    )
    yield gauge(f"{prefix}_globaltopiccount", "Topics of the cluster.", len(image.topics))
    yield gauge(f"{prefix}_globalpartitioncount", "Partitions of the cluster.", len(partitions))
    yield gauge(
        f"{prefix}_offlinepartitionscount", "Partitions without a leader.", sum(one.leader < 0 for one in partitions)
    )
    yield gauge(
        f"{prefix}_preferredreplicaimbalancecount",
        "Partitions whose leader is not the preferred replica.",
        sum(one.leader != one.replicas[0] for one in partitions),
    )
    yield gauge(
        f"{prefix}_lastappliedrecordoffset", "Offset of the last applied record of the metadata log.", image.offset
    )
    metadata = services.controller.log
    prefix = "kafka_server_raft_metrics"
    yield gauge(
        f"{prefix}_current_leader", "Node id of the leader of the metadata quorum.", services.controller.leader_id
    )
    yield gauge(f"{prefix}_current_epoch", "Epoch of the metadata quorum.", metadata.epoch)
    yield gauge(f"{prefix}_high_watermark", "High watermark of the metadata log.", metadata.log.high_watermark)
    yield gauge(f"{prefix}_log_end_offset", "End offset of the metadata log.", metadata.log.log_end_offset)


# Logs


def _directories(services: Services) -> Iterator[Family]:
    loads = services.load_reports
    recoveries = [found for load in loads for found in load.recoveries.values()]
    yield Family(
        "tailrace_log_directory_bytes",
        Kind.GAUGE,
        "Bytes of the logs in a directory.",
        [
            Sample({"logDirectory": directory.path}, sum(log.size for log in directory.logs.values()))
            for directory in services.logs.directories
        ],
    )
    offline = {directory.path: int(directory.failure is not None) for directory in services.logs.directories}
    offline.update(dict.fromkeys(services.logs.unusable, 1))
    yield gauge(
        "kafka_log_logmanager_offlinelogdirectorycount", "Log directories that have failed.", sum(offline.values())
    )
    yield Family(
        "kafka_log_logmanager_logdirectoryoffline",
        Kind.GAUGE,
        "1 if the directory has failed.",
        [Sample({"logDirectory": path}, value) for path, value in offline.items()],
    )
    if services.log_flushes is not None:
        flushes = services.log_flushes
        yield Family(
            "kafka_log_logflushstats_logflushrateandtimems",
            Kind.HISTOGRAM,
            "Milliseconds that the flush of a segment took.",
            histogram_samples(flushes, NO_LABELS, unit=1_000_000),
        )
    yield gauge("tailrace_load_clean", "1 if the last stop was clean.", int(all(load.was_clean for load in loads)))
    yield gauge("tailrace_load_failed_logs", "Logs that could not be opened.", sum(len(load.failed) for load in loads))
    yield gauge("tailrace_load_recovered_logs", "Logs that were recovered at the start.", len(recoveries))
    yield gauge(
        "tailrace_load_scanned_bytes",
        "Bytes read for the recovery at the start.",
        sum(one.bytes_scanned for one in recoveries),
    )
    yield gauge(
        "tailrace_load_cut_bytes",
        "Bytes cut off by the recovery at the start.",
        sum(one.bytes_cut for one in recoveries),
    )


def _moves(services: Services) -> Iterator[Family]:
    """Yield the metrics of moves between log directories."""
    lags = [one.move.lag for one in services.partitions if one.move is not None]
    yield gauge(
        "kafka_server_replicaalterlogdirsmanager_maxlag",
        "Largest lag, in records, of a copy that is being moved to another directory.",
        max(lags, default=0),
    )
    yield gauge("tailrace_moves_pending", "Partitions that are being moved to another directory.", len(services.moves))
    yield counter("tailrace_moves_completed", "Partitions moved to another directory.", services.moves.completed)
    yield counter(
        "tailrace_moves_copied_bytes", "Bytes copied by moves between directories.", services.moves.bytes_copied
    )


def _cleaner(services: Services, now_ms: int) -> Iterator[Family]:
    cleaning = services.cleaning
    if cleaning is None:
        return
    yield gauge("tailrace_cleaner_busy", "1 while the cleaner compacts a log.", int(cleaning.is_busy))
    yield counter("tailrace_cleaner_rounds", "Compactions of a log.", cleaning.rounds)
    yield counter("tailrace_cleaner_failures", "Compactions that failed.", cleaning.failures)
    yield counter("tailrace_cleaner_read_bytes", "Bytes read by compactions.", cleaning.bytes_read)
    yield counter("tailrace_cleaner_written_bytes", "Bytes written by compactions.", cleaning.bytes_written)
    yield gauge(
        "kafka_log_logcleanermanager_uncleanable_partitions_count",
        "Logs that are temporarily not compacted, because a compaction failed.",
        cleaning.skipped_count(now_ms),
    )
    if cleaning.last_round_ms is not None:
        yield gauge(
            "kafka_log_logcleanermanager_time_since_last_run_ms",
            "Milliseconds since a log was last compacted.",
            now_ms - cleaning.last_round_ms,
        )


def _of_logs(services: Services, value: Callable[[PartitionLog], int]) -> Iterable[Sample]:
    for partition in services.partitions:
        key = partition.key
        labels: Labels = {"topic": key.topic, "partition": str(key.partition)}
        yield Sample(labels, value(partition.log))
