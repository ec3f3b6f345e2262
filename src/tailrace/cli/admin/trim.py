"""`tailrace topics trim`: delete the oldest records of a topic."""

from __future__ import annotations

import argparse

from tailrace.cli.connection.connecting import chosen_partitions, connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import count_text, json_document, print_lines, table
from tailrace.cli.records.start_place import Start, StartPlace
from tailrace.client.admin import delete_records
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.offsets import earliest_offsets, find_offsets, latest_offsets
from tailrace.model.ids import Offset, TopicPartition


def run(options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        partitions = chosen_partitions(cluster.topic(options.topic), options)
        earliest = earliest_offsets(cluster, partitions)
        latest = latest_offsets(cluster, partitions)
        targets = _targets(cluster, options.before, earliest, latest)
        trims = {one: to for one, to in targets.items() if to > earliest[one]}
        if trims and options.yes:
            trims = delete_records(cluster, trims)
    if options.json:
        listed = [{"partition": one.partition, "from": earliest[one], "to": to} for one, to in trims.items()]
        print_lines(json_document({"topic": options.topic, "trimmed": options.yes, "partitions": listed}))
        return 0
    if not trims:
        print_lines(f"{options.topic} has no records before that offset or time")
        return 0
    rows = [(one.topic, one.partition, earliest[one], to, to - earliest[one]) for one, to in trims.items()]
    print_lines(*table(["<TOPIC", "PARTITION", "FIRST OFFSET", "NEW FIRST OFFSET", "OFFSETS"], rows))
    if not options.yes:
        count = count_text(sum(row[4] for row in rows), "offset")
        print_lines(f"nothing was changed; add --yes to delete the records at {count}")
    return 0


def _targets(
    cluster: ClusterClient,
    place: StartPlace,
    earliest: dict[TopicPartition, Offset],
    latest: dict[TopicPartition, Offset],
) -> dict[TopicPartition, Offset]:
    """Return the new first offset of each partition. An offset after the end is an error, as for the broker."""
    if place.start is Start.OFFSET:
        for one, end in latest.items():
            if place.number > end:
                raise CommandError(
                    f"--before {place.number} is beyond the end of {one}, offset {end}; nothing was changed"
                )
        return dict.fromkeys(latest, place.number)
    if place.start is Start.BEGINNING:
        return earliest
    if place.start is Start.LATEST:
        return latest
    if place.start is Start.BEFORE_END:
        return {one: max(end - place.number, 0) for one, end in latest.items()}
    found = find_offsets(cluster, dict.fromkeys(latest, place.number))
    return {one: latest[one] if (at := found[one]) is None else at.offset for one in latest}
