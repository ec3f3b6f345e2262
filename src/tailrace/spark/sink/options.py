"""WriteOptions: what a user asks of the sink, parsed and checked once, on the driver.

The names are those of Spark's Kafka sink, so that a query changes one word, and a few more. What that sink takes to
tune a Java producer means nothing here and is told in a warning; a name that nobody knows is an error.
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
    "checkpointLocation",  # Spark's own, which reaches us too
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
    "kafka.key.serializer": "keys are bytes: use DataFrame operations to make the key column",
    "kafka.value.serializer": "values are bytes: use DataFrame operations to make the value column",
    "kafka.transactional.id": "each task has one of its own; transactionalIdPrefix says how they begin",
    "kafka.interceptor.classes": "there is no Java producer to intercept",
    "kafka.partitioner.class": "keys are placed as Kafka's default partitioner does; a partition column says otherwise",
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
    why_without="it tunes a Java producer, and there is none here",
)  # fmt: skip
_CODECS = {codec.name.lower(): codec for codec in Codec}
_ID = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    bootstrap: str
    settings: ClientSettings
    topic: str | None = None
    is_exactly_once: bool = True
    # How all transactional ids of this query, or of this job, begin, and the group that keeps what was decided.
    transactional_id: str = ""
    version: int | None = None  # txnVersion: which write of this txnAppId a batch job is
    transaction_timeout_ms: int = 900_000
    codec: Codec = Codec.NONE
    level: int | None = None
    batch_size: int = 524_288
    warnings: tuple[str, ...] = ()


def write_options(given: Mapping[str, str], *, is_stream: bool) -> WriteOptions:
    """The options of a write; WrongOption, with the option's name, for what is wrong with them."""
    options = OptionValues(given, _NAMES)
    options.check_names()
    bootstrap = options.get("kafka.bootstrap.servers")
    if bootstrap is None:
        raise WrongOption("kafka.bootstrap.servers does not say where to write to")
    if options.choice("kafka.acks", ("all", "-1"), "all") and not options.flag(
        "kafka.enable.idempotence", default=True
    ):
        raise WrongOption(
            "kafka.enable.idempotence cannot be false: a record that is sent again must not be there twice"
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
    """A name that is the same whenever a query is started again, and that no other has."""
    prefix = options.get("transactionalIdPrefix") or "tailrace-spark"
    name = options.get("txnAppId")
    for option, text in (("transactionalIdPrefix", prefix), ("txnAppId", name)):
        if text is not None and not _ID.fullmatch(text):
            raise WrongOption(f"{option} is {text!r}: it takes letters, digits, dots, dashes and underscores")
    if name is not None:
        return f"{prefix}-{name}"
    location = options.get("checkpointLocation")
    if location is not None and is_stream:
        place = re.sub(r"^file:/*", "/", location.strip()).rstrip("/")
        return f"{prefix}-{hashlib.sha256(place.encode()).hexdigest()[:16]}"
    if is_stream:
        raise WrongOption(
            "exactly-once needs a name that stays over restarts: give this writer the option checkpointLocation "
            "(the session's setting does not reach it) or txnAppId, or set deliveryGuarantee to at-least-once"
        )
    return f"{prefix}-{uuid.uuid4().hex[:16]}"


def _version(options: OptionValues, is_stream: bool) -> int | None:
    text = options.get("txnVersion")
    if is_stream and text is not None:
        raise WrongOption("txnVersion is for batch writes: a stream numbers its micro-batches itself")
    if is_stream or (text is None and options.get("txnAppId") is None):
        return None
    if text is None or options.get("txnAppId") is None:
        raise WrongOption("txnAppId and txnVersion belong together: they say which write of which application this is")
    if not text.strip().isdecimal():
        raise WrongOption(f"txnVersion is {text!r}: it takes a whole number from 0 on")
    return int(text)
