"""Place: a data directory or a running cluster, from one argument of the command line.

./data   /var/lib/kafka   .        a directory
s3://bucket/prefix   gs://bucket   a directory in an object store (read-only)
localhost:9092   kafka-1:9092,kafka-2:9092        a cluster
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.errors import ClientError, Refused
from tailrace.client.network.bootstrap import parse_bootstrap
from tailrace.client.producing.producer import NotDelivered
from tailrace.client.settings import ClientSettings
from tailrace.model.ids import TopicPartition
from tailrace.object_stores.settings import StoreSettings
from tailrace.object_stores.store_address import WrongAddress, is_remote, parse_place
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.option_values import client_settings_of
from tailrace.spark.source.errors import DamagedLog, SourceError
from tailrace.spark.source.options import ReadOptions, Selection, WireOptions
from tailrace.spark.source.planning.offset_ranges import AT_EARLIEST, OffsetRange
from tailrace.spark.source.transports.transport import Slice, Transport, open_transport

_WHOLE = 2**62  # maximum bytes of a slice, so that ranges are not cut
_ADDRESS = re.compile(r"[^/\s]+:[0-9]+(,[^/\s]+)*")
# Settings of a Kafka client by their names, such as security.protocol. Some are secret.
ClientProperties: TypeAlias = Mapping[str, str]
NO_PROPERTIES: Final[ClientProperties] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Place:
    path: str | None = None
    bootstrap: str | None = None
    store: StoreSettings | None = None  # for a path in an object store
    client: ClientProperties = field(default_factory=dict, repr=False)  # for a cluster

    @classmethod
    def parse(cls, text: str, client: ClientProperties = NO_PROPERTIES) -> Place:
        """Parse an argument. Raise JobError if it is neither a directory nor the address of a cluster.

        `client` has the settings for a cluster; a directory ignores them.
        """
        if os.path.isdir(text):
            return cls(path=text)
        if is_remote(text):
            try:
                place = parse_place(text)
            except WrongAddress as error:
                raise JobError(f"{text} is not the address of a directory: {error}") from None
            return cls(path=place.path, store=place.settings)
        if not _ADDRESS.fullmatch(text):
            raise JobError(f"{text} is neither a directory nor the address of a cluster (host:port)")
        try:
            parse_bootstrap(text)
        except ClientError as error:
            raise JobError(str(error)) from None
        client_of(text, client)
        return cls(bootstrap=text, client=dict(client))

    def __str__(self) -> str:
        return self.path or self.bootstrap or ""

    def options(self, topics: Sequence[str] = (), *, read_committed: bool = False) -> ReadOptions:
        return ReadOptions(
            selection=Selection(topics=tuple(topics)) if topics else Selection(pattern=".*"),
            starting=AT_EARLIEST,
            path=self.path,
            store=self.store,
            wire=self.wire(),
            read_committed=read_committed,
            max_bytes_per_partition=_WHOLE,
        )

    def wire(self) -> WireOptions | None:
        """Return the options of the connection, which tasks get as well; None for a directory."""
        if self.bootstrap is None:
            return None
        return WireOptions(bootstrap=self.bootstrap, settings=client_of(self.bootstrap, self.client))

    @contextmanager
    def opened(self, *, read_committed: bool = False) -> Iterator[Transport]:
        with as_job_errors():
            transport = open_transport(self.options(read_committed=read_committed))
            try:
                yield transport
            finally:
                transport.close()


@contextmanager
def as_job_errors() -> Iterator[None]:
    """Raise errors of the source as JobErrors."""
    try:
        yield
    except DamagedLog as error:
        raise JobError(str(error), status=1) from None
    except SourceError as error:
        raise JobError(str(error), is_transient=error.is_transient) from None


def client_of(bootstrap: str, client: ClientProperties) -> ClientSettings:
    """Return the settings of a client. Raise JobError if they are wrong."""
    if not client:
        return ClientSettings()
    try:
        return client_settings_of(bootstrap, client)
    except SourceError as error:
        raise JobError(str(error)) from None


@contextmanager
def cluster_at(bootstrap: str, client: ClientProperties = NO_PROPERTIES) -> Iterator[ClusterClient]:
    """Yield a client of a cluster. Its errors are raised as JobErrors."""
    try:
        with ClusterClient(bootstrap, client_of(bootstrap, client)) as cluster:
            yield cluster
    except ClientError as error:
        status = 1 if isinstance(error, Refused | NotDelivered) else 2
        raise JobError(str(error), status=status, is_transient=error.is_retriable) from None


def whole_slice(transport: Transport, wanted: OffsetRange, options: ReadOptions) -> Slice:
    """Return a range as one slice."""
    (found,) = transport.slices([wanted], options)
    return found


def topic_pairs(words: Sequence[str]) -> dict[str, str]:
    """Parse topics: `orders`, or `orders:copy` for a topic with another name on the other side."""
    pairs: dict[str, str] = {}
    for word in words:
        here, _, there = word.partition(":")
        if not here or (":" in word and not there):
            raise JobError(f"{word!r} is not a topic: write NAME, or NAME:OTHER if it has another name there")
        if here in pairs:
            raise JobError(f"topic {here} is listed twice")
        pairs[here] = there or here
    return pairs


def other_name(partition: TopicPartition, pairs: Mapping[str, str]) -> TopicPartition:
    return TopicPartition(pairs.get(partition.topic, partition.topic), partition.partition)
