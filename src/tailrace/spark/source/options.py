"""ReadOptions: the options of the source, parsed and checked once, on the driver.

The names are those of Spark's Kafka source, so that a query changes only its format. Options that tune a Java consumer
have no effect and log a warning. Options that Spark's source refuses are refused. Unknown options are an error, because
they are most likely misspelled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.client.settings import ClientSettings
from tailrace.model.ids import TopicPartition
from tailrace.object_stores.settings import StoreSettings
from tailrace.object_stores.store_address import Place
from tailrace.spark.option_values import CLUSTER_OPTIONS, TOTAL_TIMEOUT, OptionNames, OptionValues, client_settings
from tailrace.spark.source.errors import WrongOption
from tailrace.spark.source.planning.offset_ranges import (
    AT_EARLIEST,
    AT_LATEST,
    EARLIEST,
    LATEST,
    Point,
    parse_offsets,
    parse_partitions,
)
from tailrace.spark.source.store_options import STORE_OPTIONS, place_of

_SELECTIONS = ("subscribe", "subscribePattern", "assign")
_OWN = (
    *_SELECTIONS,
    "path",
    "remote.path",
    *STORE_OPTIONS,
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingOffsetsWithoutCommit",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "failOnDataLoss",
    "includeHeaders",
    "includeBatchFacts",
    "pushFilters",
    "pushLimit",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxBytesPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "commitOffsetsToGroup",
)
_KAFKA = (
    *CLUSTER_OPTIONS,
    "kafka.isolation.level",
    TOTAL_TIMEOUT,
    "kafka.fetch.min.bytes",
    "kafka.fetch.max.bytes",
    "kafka.fetch.max.wait.ms",
    "kafka.max.partition.fetch.bytes",
)
# Spark's source refuses these: it sets them itself, and other values would read other records than planned.
_REFUSED = {
    "kafka.auto.offset.reset": "use startingOffsets for the start, and failOnDataLoss for missing records",
    "kafka.key.deserializer": "keys are bytes: use DataFrame operations on the key column",
    "kafka.value.deserializer": "values are bytes: use DataFrame operations on the value column",
    "kafka.enable.auto.commit": "Spark's checkpoint stores the offsets; commitOffsetsToGroup publishes them in a group",
    "kafka.interceptor.classes": "the source has no Java consumer",
}
# These tune a Java consumer or its group. The source has neither.
_WITHOUT_EFFECT = frozenset({
    "groupidprefix",
    "kafkaconsumer.polltimeoutms",
    "fetchoffset.numretries",
    "fetchoffset.retryintervalms",
    "kafka.group.id",
    "kafka.group.instance.id",
    "kafka.group.protocol",
    "kafka.max.poll.records",
    "kafka.max.poll.interval.ms",
    "kafka.session.timeout.ms",
    "kafka.heartbeat.interval.ms",
    "kafka.partition.assignment.strategy",
    "kafka.receive.buffer.bytes",
    "kafka.send.buffer.bytes",
    "kafka.metadata.max.age.ms",
    "kafka.connections.max.idle.ms",
    "kafka.reconnect.backoff.ms",
    "kafka.reconnect.backoff.max.ms",
    "kafka.check.crcs",
    "kafka.exclude.internal.topics",
})  # fmt: skip
_NAMES = OptionNames(
    own=_OWN,
    kafka=_KAFKA,
    refused=_REFUSED,
    without_effect=_WITHOUT_EFFECT,
    why_without="it tunes a Java consumer, and the source has none",
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected partitions: all of some topics, all of topics whose whole name matches, or exactly these."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The named topics, which must exist."""
        return self.topics or tuple(dict.fromkeys(partition.topic for partition in self.partitions))

    def matches(self, topic: str, *, is_internal: bool) -> bool:
        """Return True if a topic is selected. A pattern never selects internal topics."""
        if self.pattern is not None:
            return not is_internal and re.fullmatch(self.pattern, topic) is not None
        return topic in self.names


@dataclass(frozen=True, slots=True, kw_only=True)
class WireOptions:
    """Address, client settings and fetch sizes of a cluster."""

    bootstrap: str
    settings: ClientSettings = field(default_factory=ClientSettings)
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 16_777_216  # Kafka's default of 1 MB would need many requests for a long read


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    selection: Selection
    starting: Point
    ending: Point = AT_LATEST
    no_match_is_latest: bool = False
    without_commit: str | None = None  # earliest, latest or error; None: earliest, if the group has any commit
    path: str | None = None
    remote_path: str | None = None  # the remote segments of tiered storage
    store: StoreSettings | None = None  # for a path in an object store
    wire: WireOptions | None = None
    read_committed: bool = False
    fail_on_data_loss: bool = True
    include_headers: bool = False
    include_batch_facts: bool = False
    push_filters: bool = False
    push_limit: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_bytes_per_partition: int = 134_217_728
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    commit_group: str | None = None
    warnings: tuple[str, ...] = ()


def read_options(given: Mapping[str, str], *, is_stream: bool) -> ReadOptions:
    """Parse the options of a query. Raise WrongOption with the name of a wrong option."""
    options = OptionValues(given, _NAMES)
    options.check_names()
    starting, ending = _starting(options, is_stream), _ending(options, is_stream)
    wire = _wire(options)
    place, is_remote_log = _place(options)
    if place is None and wire is None:
        raise WrongOption(
            "the source is missing: set path (a data directory), remote.path (a store of tiered storage) or "
            "kafka.bootstrap.servers (a running cluster)"
        )
    if wire is None:
        for name in options.given_of(_KAFKA):
            if name != "kafka.isolation.level":
                options.warnings.append(f"{name} has no effect without kafka.bootstrap.servers")
    limits = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "commitOffsetsToGroup")
    if starting.group is not None and wire is None:
        raise WrongOption("startingOffsets=group:… needs kafka.bootstrap.servers, because groups are on the cluster")
    for name in limits if not is_stream else ():
        if options.get(name) is not None:
            options.warnings.append(f"{name} is for streams and has no effect on a batch query")
    max_offsets, min_offsets = options.count("maxOffsetsPerTrigger"), options.count("minOffsetsPerTrigger")
    if max_offsets is not None and min_offsets is not None and min_offsets > max_offsets:
        raise WrongOption(f"minOffsetsPerTrigger ({min_offsets}) is more than maxOffsetsPerTrigger ({max_offsets})")
    return ReadOptions(
        selection=_selection(options),
        starting=starting,
        ending=ending,
        no_match_is_latest=options.choice("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
        == "latest",
        without_commit=_without_commit(options, starting),
        path=None if place is None or is_remote_log else place.path,
        remote_path=place.path if place is not None and is_remote_log else None,
        store=None if place is None else place.settings,
        wire=wire,
        read_committed=options.choice(
            "kafka.isolation.level", ("read_uncommitted", "read_committed"), "read_uncommitted"
        )
        == "read_committed",
        fail_on_data_loss=options.flag("failOnDataLoss", default=True),
        include_headers=options.flag("includeHeaders"),
        include_batch_facts=options.flag("includeBatchFacts"),
        push_filters=options.flag("pushFilters"),
        push_limit=options.flag("pushLimit"),
        min_partitions=options.count("minPartitions"),
        max_records_per_partition=options.count("maxRecordsPerPartition"),
        max_bytes_per_partition=options.size("maxBytesPerPartition", 134_217_728),
        max_offsets_per_trigger=max_offsets,
        min_offsets_per_trigger=min_offsets,
        max_trigger_delay_ms=options.duration("maxTriggerDelay", 900_000),
        commit_group=_commit_group(options, wire),
        warnings=tuple(options.warnings),
    )


def _place(options: OptionValues) -> tuple[Place | None, bool]:
    """Return the location of the files, and True if they are remote segments."""
    if options.get("remote.path") is None:
        return place_of(options), False
    if options.get("path") is not None:
        raise WrongOption(
            "path and remote.path cannot both be set: the tail of the log comes from kafka.bootstrap.servers, and the "
            "older records from remote.path"
        )
    return place_of(options, "remote.path"), True


def _commit_group(options: OptionValues, wire: WireOptions | None) -> str | None:
    group = options.get("commitOffsetsToGroup")
    if group is not None and not group.strip():
        raise WrongOption("commitOffsetsToGroup is empty; it must be the name of a group")
    if group is not None and wire is None:
        raise WrongOption("commitOffsetsToGroup needs kafka.bootstrap.servers, because groups are on the cluster")
    return group


def _without_commit(options: OptionValues, starting: Point) -> str | None:
    if options.get("startingOffsetsWithoutCommit") is None:
        return None
    if starting.group is None and starting.table is None:
        options.warnings.append("startingOffsetsWithoutCommit has no effect without startingOffsets=group:… or table:…")
    return options.choice("startingOffsetsWithoutCommit", ("earliest", "latest", "error"), "earliest")


def _selection(options: OptionValues) -> Selection:
    given = [name for name in _SELECTIONS if options.get(name) is not None]
    if len(given) != 1:
        found = f"{' and '.join(given)} are set" if given else "none is set"
        raise WrongOption(f"exactly one of {', '.join(_SELECTIONS)} must be set; {found}")
    text = (options.get(given[0]) or "").strip()
    if given[0] == "subscribe":
        topics = tuple(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))
        if not topics:
            raise WrongOption(f"subscribe is {text!r}; it must be topics, separated by commas")
        return Selection(topics=topics)
    if given[0] == "assign":
        partitions = parse_partitions(text, "assign")
        if not partitions:
            raise WrongOption(f'assign is {text!r}; it must be {{"topic": [0, 1]}}')
        return Selection(partitions=tuple(partitions))
    try:
        re.compile(text)
    except re.error as error:
        raise WrongOption(f"subscribePattern {text!r} is not a regular expression: {error}") from None
    if not text:
        raise WrongOption("subscribePattern is empty")
    return Selection(pattern=text)


def _starting(options: OptionValues, is_stream: bool) -> Point:
    point = _point(options, "starting", AT_LATEST if is_stream else AT_EARLIEST)
    if not is_stream:
        _refuse_place(point, LATEST, "startingOffsets", "latest", "a batch query would read no records")
    return point


def _ending(options: OptionValues, is_stream: bool) -> Point:
    given = [name for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp") if options.get(name)]
    if is_stream and given:
        raise WrongOption(f"{given[0]} is for batch queries: a stream does not end")
    point = _point(options, "ending", AT_LATEST)
    _refuse_place(point, EARLIEST, "endingOffsets", "earliest", "the query would read no records")
    return point


def _refuse_place(point: Point, place: int, option: str, name: str, reason: str) -> None:
    if point.is_by_time or point.is_named:
        return
    if point.offsets is None and point.place == place:
        raise WrongOption(f"{option} cannot be {name}: {reason}")
    for partition, offset in (point.offsets or {}).items():
        if offset == place:
            raise WrongOption(f"{option} cannot be {name} ({place}) for {partition}: {reason}")


def _point(options: OptionValues, which: str, default: Point) -> Point:
    """Parse a starting or ending point. One time for all overrides times by partition, and these override offsets."""
    time = options.get(f"{which}Timestamp")
    if time is not None:
        if not time.strip().isdecimal():
            raise WrongOption(f"{which}Timestamp is {time!r}; it must be milliseconds since 1970")
        return Point(time=int(time))
    times = options.get(f"{which}OffsetsByTimestamp")
    if times is not None:
        parsed = parse_offsets(times, f"{which}OffsetsByTimestamp")
        for partition, moment in parsed.items():
            if moment < 0:
                raise WrongOption(
                    f"{which}OffsetsByTimestamp has {moment} for {partition}; it must be milliseconds since 1970"
                )
        return Point(times=parsed)
    offsets = options.get(f"{which}Offsets")
    if offsets is None:
        return default
    place = {"earliest": AT_EARLIEST, "latest": AT_LATEST}.get(offsets.strip().lower())
    if place is not None:
        return place
    if which == "starting":
        for prefix in ("group", "table"):
            if offsets.strip().startswith(f"{prefix}:"):
                return _named_point(prefix, offsets.strip().removeprefix(f"{prefix}:"))
    parsed = parse_offsets(offsets, f"{which}Offsets")
    for partition, offset in parsed.items():
        if offset < EARLIEST:
            raise WrongOption(
                f"{which}Offsets has {offset} for {partition}; it must be an offset, -2 (earliest) or -1 (latest)"
            )
    return Point(offsets=parsed)


def _named_point(prefix: str, name: str) -> Point:
    if not name.strip():
        raise WrongOption(f"startingOffsets is {prefix}: without a name; write {prefix}:NAME")
    return Point(group=name) if prefix == "group" else Point(table=name)


def _wire(options: OptionValues) -> WireOptions | None:
    bootstrap = options.get("kafka.bootstrap.servers")
    if bootstrap is None:
        return None
    settings = client_settings(options, TOTAL_TIMEOUT)
    defaults = WireOptions(bootstrap=bootstrap)
    return WireOptions(
        bootstrap=bootstrap,
        settings=settings,
        fetch_min_bytes=options.number("kafka.fetch.min.bytes", defaults.fetch_min_bytes),
        fetch_max_bytes=options.number("kafka.fetch.max.bytes", defaults.fetch_max_bytes),
        fetch_max_wait_ms=options.number("kafka.fetch.max.wait.ms", defaults.fetch_max_wait_ms),
        max_partition_fetch_bytes=options.number("kafka.max.partition.fetch.bytes", defaults.max_partition_fetch_bytes),
    )
