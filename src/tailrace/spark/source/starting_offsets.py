"""The starting offsets of a query, resolved: also those of a consumer group, `group:NAME`, or a table, `table:PLACE`.

A partition without a committed offset starts at the earliest record, so that no record is missed;
startingOffsetsWithoutCommit selects another rule. A group without a commit for any selected partition is an error
unless that option is set, because its name is most likely misspelled.

A stream uses its starting offsets once, for its first micro-batch. Later the offsets in the checkpoint count.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.errors import ClientError
from tailrace.client.groups.group_offsets import committed_offsets
from tailrace.model.ids import Offset, TopicPartition
from tailrace.spark.source.errors import Unreadable, WrongOption
from tailrace.spark.source.options import ReadOptions, WireOptions
from tailrace.spark.source.planning.offset_ranges import EARLIEST, LATEST, Point, resolve_start
from tailrace.spark.source.transports.transport import Transport

_PLACES: Mapping[str | None, int] = {None: EARLIEST, "earliest": EARLIEST, "latest": LATEST}


def starting_offsets(
    options: ReadOptions, partitions: list[TopicPartition], transport: Transport
) -> dict[TopicPartition, Offset]:
    """Return the first offset to read of each partition."""
    point = options.starting
    if point.group is not None:
        assert options.wire is not None, "options are checked"
        known = _group_offsets(point.group, options.wire)
        point = completed(f"group {point.group}", known, partitions, options.without_commit)
    elif point.table is not None:
        known = _table_offsets(point.table, options, partitions, transport)
        point = completed(f"table {point.table}", known, partitions, options.without_commit)
    return resolve_start(point, partitions, transport, no_match_is_latest=options.no_match_is_latest)


def completed(
    source: str, known: Mapping[TopicPartition, Offset], partitions: list[TopicPartition], without_commit: str | None
) -> Point:
    """Return a point with the known offsets of the partitions, and with the rule's place for the others."""
    missing = [partition for partition in partitions if partition not in known]
    if missing and without_commit == "error":
        raise WrongOption(
            f"{source} has no offset for {missing[0]}; "
            "set startingOffsetsWithoutCommit to earliest or latest to start there"
        )
    if partitions and len(missing) == len(partitions) and without_commit is None:
        raise WrongOption(
            f"{source} has no offset for any selected partition: is its name right? "
            "Set startingOffsetsWithoutCommit to earliest or latest to start there"
        )
    return Point(offsets={one: known[one] if one in known else _PLACES[without_commit] for one in partitions})


def _table_offsets(
    place: str, options: ReadOptions, partitions: list[TopicPartition], transport: Transport
) -> dict[TopicPartition, Offset]:
    from tailrace.spark.jobs.errors import JobError

    # By its name, because the package of tables uses this one: it is loaded only for such a query.
    tables: Any = import_module("tailrace.spark.tables.table_offsets")
    try:
        ends = tables.table_ends(place, partitions)
        ends.check(place, transport.identities(options.selection, missing_ok=True))
    except JobError as error:
        raise Unreadable(str(error)) from None
    found = {partition: ends.next_offset(partition) for partition in partitions}
    return {partition: offset for partition, offset in found.items() if offset is not None}


def _group_offsets(group: str, wire: WireOptions) -> dict[TopicPartition, Offset]:
    try:
        with ClusterClient(wire.bootstrap, wire.settings) as cluster:
            found = committed_offsets(Coordinators(cluster), group)
    except ClientError as error:
        raise Unreadable(f"the offsets of group {group} at {wire.bootstrap} cannot be read: {error}") from None
    return {partition: noted.offset for partition, noted in found.items()}
