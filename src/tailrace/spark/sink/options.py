"""WriteOptions: the options of the sink, parsed and checked once, on the driver.

The names are those of Spark's Kafka sink, and a few more, so that a query changes only its format. Options that tune a
Java producer have no effect and log a warning. Unknown options are an error.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tailrace.client.settings import ClientSettings
from tailrace.records.batch import Codec
from tailrace.spark.option_values import CLUSTER_OPTIONS, OptionNames, OptionValues, client_settings
from tailrace.spark.source.errors import WrongOption

EXACTLY_ONCE: Final = "exactly-once"
AT_LEAST_ONCE: Final = "at-least-once"
_OWN = (
    "topic",
    "deliveryGuarantee",
    "transactionalIdPrefix",
    "txnAppId",
    "txnVersion",
    "checkpointLocation",  # an option of Spark that is passed to the sink as well
    "queryName",
)
_KAFKA = (
    *CLUSTER_OPTIONS,
    "kafka.delivery.timeout.ms",
    "kafka.transaction.timeout.ms",
    "kafka.compression.type",
    "kafka.compression.gzip.level",
    "kafka.compression.lz4.level",
    "kafka.compression.zstd.level",
    "kafka.batch.size",
    "kafka.acks",
    "kafka.enable.idempotence",
)
_REFUSED = {
    "kafka.key.serializer": "keys are bytes: create the key column with DataFrame operations",
    "kafka.value.serializer": "values are bytes: create the value column with DataFrame operations",
    "kafka.transactional.id": "each task has its own id; set their prefix with transactionalIdPrefix",
    "kafka.interceptor.classes": "the sink has no Java producer",
    "kafka.partitioner.class": "keys are partitioned as Kafka does by default; a partition column overrides",
}
_NAMES = OptionNames(
    own=_OWN,
    kafka=_KAFKA,
    refused=_REFUSED,
    without_effect=frozenset({
        "includeheaders",
        "kafka.linger.ms",
        "kafka.buffer.memory",
        "kafka.max.block.ms",
        "kafka.max.in.flight.requests.per.connection",
        "kafka.max.request.size",
        "kafka.retries",
        "kafka.receive.buffer.bytes",
        "kafka.send.buffer.bytes",
        "kafka.metadata.max.age.ms",
        "kafka.metadata.max.idle.ms",
        "kafka.connections.max.idle.ms",
        "kafka.reconnect.backoff.ms",
        "kafka.reconnect.backoff.max.ms",
        "kafka.partitioner.ignore.keys",
        "kafka.partitioner.adaptive.partitioning.enable",
        "kafka.partitioner.availability.timeout.ms",
    }),
    why_without="it tunes a Java producer, and the sink has none",
)  # fmt: skip
_CODECS = {codec.name.lower(): codec for codec in Codec}
_ID = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    bootstrap: str
    settings: ClientSettings
    topic: str | None = None
    is_exactly_once: bool = True
    # The prefix of all transactional ids of this query or job, and the name of the group with its decisions.
    transactional_id: str = ""
    version: int | None = None  # txnVersion: the number of this write of the txnAppId, for a batch job
    transaction_timeout_ms: int = 900_000
    codec: Codec = Codec.NONE
    level: int | None = None
    batch_size: int = 524_288
    warnings: tuple[str, ...] = ()


def write_options(given: Mapping[str, str], *, is_stream: bool) -> WriteOptions:
    """Parse the options of a write. Raise WrongOption with the name of a wrong option."""
    options = OptionValues(given, _NAMES)
    options.check_names()
    bootstrap = options.get("kafka.bootstrap.servers")
    if bootstrap is None:
        raise WrongOption("kafka.bootstrap.servers is missing: set it to host:port of the cluster")
    if options.choice("kafka.acks", ("all", "-1"), "all") and not options.flag(
        "kafka.enable.idempotence", default=True
    ):
        raise WrongOption(
            "kafka.enable.idempotence cannot be false: a record that is sent again must not be written twice"
        )
    guarantee = options.choice("deliveryGuarantee", (EXACTLY_ONCE, AT_LEAST_ONCE), EXACTLY_ONCE)
    codec = _CODECS[options.choice("kafka.compression.type", tuple(_CODECS), "none")]
    topic = options.get("topic")
    if topic is not None and not topic.strip():
        raise WrongOption("topic is empty")
    return WriteOptions(
        bootstrap=bootstrap,
        settings=client_settings(options, "kafka.delivery.timeout.ms"),
        topic=None if topic is None else topic.strip(),
        is_exactly_once=guarantee == EXACTLY_ONCE,
        transactional_id=_transactional_id(options, is_stream) if guarantee == EXACTLY_ONCE else "",
        version=_version(options, is_stream),
        transaction_timeout_ms=options.number("kafka.transaction.timeout.ms", 900_000),
        codec=codec,
        level=options.count(f"kafka.compression.{codec.name.lower()}.level"),
        batch_size=options.number("kafka.batch.size", 524_288),
        warnings=tuple(options.warnings),
    )


def _transactional_id(options: OptionValues, is_stream: bool) -> str:
    """Return a transactional id that is unique to a query and stays the same over restarts."""
    prefix = options.get("transactionalIdPrefix") or "tailrace-spark"
    name = options.get("txnAppId")
    for option, text in (("transactionalIdPrefix", prefix), ("txnAppId", name)):
        if text is not None and not _ID.fullmatch(text):
            raise WrongOption(f"{option} is {text!r}; it may have only letters, digits, dots, dashes and underscores")
    if name is not None:
        return f"{prefix}-{name}"
    location = options.get("checkpointLocation")
    if location is not None and is_stream:
        place = re.sub(r"^file:/*", "/", location.strip()).rstrip("/")
        return f"{prefix}-{hashlib.sha256(place.encode()).hexdigest()[:16]}"
    if is_stream:
        raise WrongOption(
            "exactly-once needs a name that is stable over restarts: set the option checkpointLocation of this writer "
            "(the session's setting is not passed to it) or txnAppId, or set deliveryGuarantee to at-least-once"
        )
    return f"{prefix}-{uuid.uuid4().hex[:16]}"


def _version(options: OptionValues, is_stream: bool) -> int | None:
    text = options.get("txnVersion")
    if is_stream and text is not None:
        raise WrongOption("txnVersion is for batch writes: a stream numbers its micro-batches itself")
    if is_stream or (text is None and options.get("txnAppId") is None):
        return None
    if text is None or options.get("txnAppId") is None:
        raise WrongOption("txnAppId and txnVersion must be set together: they identify the application and its write")
    if not text.strip().isdecimal():
        raise WrongOption(f"txnVersion is {text!r}; it must be a whole number of at least 0")
    return int(text)
