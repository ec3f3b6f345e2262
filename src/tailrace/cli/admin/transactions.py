"""`tailrace transactions`: list, describe, find hanging transactions, and abort one in a partition."""

from __future__ import annotations

import argparse
import time
from typing import Any

from tailrace.cli.connection.connecting import bootstrap_text, chosen_partitions, connected, for_each
from tailrace.cli.errors import CommandError
from tailrace.cli.output import count_text, json_document, print_lines, table, time_text
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.producing.transaction_admin import (
    ActiveProducer,
    TransactionDescription,
    abort_transaction,
    describe_producers,
    describe_transaction,
    find_hanging,
    list_transactions,
)
from tailrace.model.ids import TopicPartition

_PRODUCER_HEADS = ["<PARTITION", "PRODUCER ID", "EPOCH", "COORDINATOR EPOCH", "START OFFSET", "<LAST WRITE", "MINUTES"]


def _now_ms() -> int:
    return int(time.time() * 1000)


def run_list(options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        found = list_transactions(
            cluster,
            states=options.state or (),
            producer_ids=options.producer_id or (),
            longer_than_ms=-1 if options.longer_than is None else options.longer_than,
            pattern=options.pattern,
        )
    if options.json:
        print_lines(
            json_document(
                {
                    "transactions": [
                        {
                            "transactionalId": one.transactional_id,
                            "coordinator": one.coordinator,
                            "producerId": one.producer_id,
                            "state": one.state,
                        }
                        for one in found
                    ]
                }
            )
        )
    elif found:
        rows = [(one.transactional_id, one.coordinator, one.producer_id, one.state) for one in found]
        print_lines(*table(["<TRANSACTIONAL ID", "COORDINATOR", "PRODUCER ID", "<STATE"], rows))
    else:
        print_lines(f"there are no such transactions at {bootstrap_text(cluster)}")
    return 0


def run_describe(options: argparse.Namespace) -> int:
    found: list[TransactionDescription] = []
    with connected(options) as cluster:
        coordinators = Coordinators(cluster)
        status = for_each(options.id, lambda one: found.append(describe_transaction(coordinators, one)))
    if options.json:
        print_lines(json_document({"transactions": [_description_json(one) for one in found]}))
        return status
    for number, one in enumerate(found):
        if number:
            print_lines("")
        _show(one)
    return status


def _show(one: TransactionDescription) -> None:
    print_lines(f"{one.transactional_id}  ·  {one.state}  ·  producer {one.producer_id}, epoch {one.producer_epoch}")
    print_lines(f"  timeout {one.timeout_ms:,} ms")
    if one.partitions:
        open_ms = max(_now_ms() - one.start_ms, 0)
        print_lines(
            f"  since {time_text(one.start_ms)}, {open_ms:,} ms, in {count_text(len(one.partitions), 'partition')}:"
        )
        print_lines(*[f"    {partition}" for partition in one.partitions])


def _description_json(one: TransactionDescription) -> dict[str, Any]:
    return {
        "transactionalId": one.transactional_id,
        "producerId": one.producer_id,
        "producerEpoch": one.producer_epoch,
        "state": one.state,
        "timeoutMs": one.timeout_ms,
        "startTimeMs": one.start_ms if one.partitions else None,
        "partitions": [{"topic": topic, "partition": index} for topic, index in one.partitions],
    }


def run_find_hanging(options: argparse.Namespace) -> int:
    """Print hanging transactions; return exit status 1 if there are any."""
    now_ms = _now_ms()
    with connected(options) as cluster:
        if options.partition and not options.topic:
            raise CommandError("--partition needs --topic")
        if options.topic:
            partitions = [one for name in options.topic for one in chosen_partitions(cluster.topic(name), options)]
        else:
            partitions = [one for topic in cluster.topics() for one in topic.topic_partitions]
        if options.broker is not None:
            leaders = {one.partition: one.leader for topic in cluster.topics() for one in topic.partitions}
            partitions = [one for one in partitions if leaders.get(one) == options.broker]
        longest_ms = int(options.longer_than_minutes * 60_000)
        found = find_hanging(Coordinators(cluster), partitions, longest_ms=longest_ms, now_ms=now_ms)
    if options.json:
        print_lines(json_document({"hanging": [_producer_json(one) for one in found]}))
    elif found:
        print_lines(*table(_PRODUCER_HEADS, [_producer_row(one, now_ms) for one in found]))
        print_lines("", "`tailrace transactions abort PARTITION --start-offset N` aborts one.")
    else:
        print_lines(f"no transaction hangs in {count_text(len(partitions), 'partition')}")
    return 1 if found else 0


def _producer_row(one: ActiveProducer, now_ms: int) -> tuple[object, ...]:
    minutes = (now_ms - one.last_timestamp_ms) // 60_000
    epoch = max(one.coordinator_epoch, 0)
    last = time_text(one.last_timestamp_ms)
    return (str(one.partition), one.producer_id, one.producer_epoch, epoch, one.start_offset, last, minutes)


def _producer_json(one: ActiveProducer) -> dict[str, Any]:
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "producerId": one.producer_id,
        "producerEpoch": one.producer_epoch,
        "coordinatorEpoch": one.coordinator_epoch,
        "startOffset": one.start_offset,
        "lastTimestampMs": one.last_timestamp_ms,
    }


def run_abort(options: argparse.Namespace) -> int:
    topic, _, number = options.partition.rpartition("-")
    if not topic or not number.isdigit():
        raise CommandError(f"{options.partition!r} is not a partition: write TOPIC-NUMBER")
    key = TopicPartition(topic, int(number))
    with connected(options) as cluster:
        cluster.topic(topic).partition(key.partition)
        open_ones = [one for one in describe_producers(cluster, [key])[key] if one.start_offset >= 0]
        chosen = [one for one in open_ones if one.start_offset == options.start_offset]
        if not chosen:
            others = ", ".join(str(one.start_offset) for one in open_ones) or "none"
            raise CommandError(
                f"no open transaction in {key} starts at offset {options.start_offset} (open ones start at: {others})",
                status=1,
            )
        abort_transaction(cluster, chosen[0])
    if options.json:
        print_lines(json_document({"aborted": _producer_json(chosen[0])}))
    else:
        print_lines(
            f"{key}: the transaction of producer {chosen[0].producer_id} at offset {options.start_offset} is aborted"
        )
    return 0
