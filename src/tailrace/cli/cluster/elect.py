"""`tailrace elect`: preferred and unclean leader elections."""

from __future__ import annotations

import argparse

from tailrace.cli.connection.connecting import connected
from tailrace.cli.output import count_text, json_document, print_lines, report_error
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.elections import ElectionType, elect_leaders
from tailrace.client.cluster.metadata import NO_LEADER
from tailrace.client.errors import code_name
from tailrace.model.ids import TopicPartition


def run(options: argparse.Namespace) -> int:
    kind = ElectionType[options.kind]
    with connected(options) as cluster:
        wanted = _chosen(cluster, options) if options.topic else None
        if not options.yes:
            return _preview(cluster, wanted or [], is_json=options.json)
        results = elect_leaders(cluster, kind, wanted)
        elected = [one for one, refusal in results.items() if refusal is None]
        leaders = {one: cluster.topic(one.topic, fresh=True).partition(one.partition).leader for one in elected}
    refused = [refusal for refusal in results.values() if refusal is not None]
    if options.json:
        print_lines(json_document({"elected": [{**one._asdict(), "leader": leaders[one]} for one in elected]}))
    else:
        for one in elected:
            print_lines(f"{one}: broker {leaders[one]} leads")
        if not results:
            print_lines("no partition needs an election")
    for refusal in refused:
        report_error(str(refusal), 1, code=code_name(refusal.code))
    return 1 if refused else 0


def _preview(cluster: ClusterClient, wanted: list[TopicPartition], *, is_json: bool) -> int:
    """Show the partitions without a leader, which an unclean election would change."""
    leaderless = [one for one in wanted if cluster.topic(one.topic).partition(one.partition).leader == NO_LEADER]
    if is_json:
        print_lines(json_document({"elected": [], "leaderless": [one._asdict() for one in leaderless]}))
        return 0
    for one in leaderless:
        print_lines(f"{one}: no leader")
    count = count_text(len(leaderless), "partition has", "partitions have")
    print_lines(f"nothing was changed; {count} no leader" + ("; add --yes to elect" if leaderless else ""))
    return 0


def _chosen(cluster: ClusterClient, options: argparse.Namespace) -> list[TopicPartition]:
    chosen: dict[TopicPartition, None] = {}
    for name, numbers in options.topic:
        topic = cluster.topic(name)
        for number in range(len(topic.partitions)) if numbers is None else sorted(numbers):
            chosen[topic.partition(number).partition] = None
    return list(chosen)
