"""`tailrace topics`: list, describe, create, delete and alter the topics of a cluster."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Iterable
from typing import Any

from tailrace.cli.connection.connecting import bootstrap_text, connected, for_each, split_setting
from tailrace.cli.output import count_text, json_document, print_lines, table
from tailrace.client.admin import NewTopic, add_partitions, create_topic, delete_topic
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.metadata import NO_LEADER, PartitionMetadata, TopicMetadata
from tailrace.client.configs import ConfigEntry, ConfigSource, Resource, describe_configs
from tailrace.client.errors import Refused, UnknownTopic
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicId


def run_list(options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        topics = [topic for topic in cluster.topics() if options.internal or not topic.is_internal]
    if options.json:
        print_lines(json_document({"topics": [_topic_json(topic) for topic in topics]}))
    elif topics:
        rows = [(t.name, len(t.partitions), t.replication_factor, _id_text(t)) for t in topics]
        print_lines(*table(["<TOPIC", "PARTITIONS", "REPLICAS", "<ID"], rows))
    else:
        print_lines(f"there are no topics at {bootstrap_text(cluster)}")
    return 0


def run_describe(options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        if options.topic:
            topics = [cluster.topic(name) for name in dict.fromkeys(options.topic)]
        else:
            topics = [topic for topic in cluster.topics() if not topic.is_internal]
        shown = [(topic, _own_configs(cluster, topic)) for topic in topics if _is_shown(topic, options)]
    if options.json:
        documents = [
            _topic_json(topic)
            | {
                "configs": None if configs is None else {entry.name: entry.value for entry in configs},
                "partitions": [_partition_json(one) for one in _chosen(topic, options)],
            }
            for topic, configs in shown
        ]
        print_lines(json_document({"topics": documents}))
        return 0
    for number, (topic, configs) in enumerate(shown):
        if number:
            print_lines("")
        _show(topic, configs, options)
    return 0


def _is_shown(topic: TopicMetadata, options: argparse.Namespace) -> bool:
    return not options.unhealthy or bool(_chosen(topic, options))


def _chosen(topic: TopicMetadata, options: argparse.Namespace) -> list[PartitionMetadata]:
    return [one for one in topic.partitions if not options.unhealthy or _is_unhealthy(one)]


def _is_unhealthy(partition: PartitionMetadata) -> bool:
    return partition.leader == NO_LEADER or len(partition.isr) < len(partition.replicas)


def _own_configs(cluster: ClusterClient, topic: TopicMetadata) -> list[ConfigEntry] | None:
    """Return the configs that the topic sets itself; None without the right to see them."""
    try:
        configs = describe_configs(cluster, Resource.topic(topic.name))
    except Refused as error:
        if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return None
        raise
    return [entry for entry in configs if entry.source is ConfigSource.TOPIC_CONFIG]


def _show(topic: TopicMetadata, configs: list[ConfigEntry] | None, options: argparse.Namespace) -> None:
    facts = [
        topic.name,
        count_text(len(topic.partitions), "partition"),
        count_text(topic.replication_factor, "replica"),
        f"id {_id_text(topic)}",
    ]
    print_lines("  ·  ".join(facts + ["internal"] * topic.is_internal))
    if configs is None:
        print_lines("  configs: not authorized to see them")
    elif configs:
        print_lines("  " + "  ".join(f"{entry.name}={entry.value}" for entry in configs))
    rows = [
        (
            one.partition.partition,
            None if one.leader == NO_LEADER else one.leader,
            one.leader_epoch,
            _ids_text(one.replicas),
            _ids_text(one.isr),
            _ids_text(one.offline_replicas),
        )
        for one in _chosen(topic, options)
    ]
    print_lines(*table(["PARTITION", "LEADER", "EPOCH", "<REPLICAS", "<IN SYNC", "<OFFLINE"], rows, indent="  "))


def run_create(options: argparse.Namespace) -> int:
    config = dict(split_setting(text) for text in options.config)
    made: list[TopicMetadata] = []

    def create(name: str) -> None:
        topic = NewTopic(
            name=name, partitions=options.partitions, replication_factor=options.replication_factor, config=config
        )
        try:
            create_topic(cluster, topic, validate_only=options.dry_run)
        except Refused as error:
            if not (options.if_not_exists and error.code == ErrorCode.TOPIC_ALREADY_EXISTS):
                raise
            if not options.json:
                print_lines(f"{name}: exists already")
            return
        if options.dry_run:
            if not options.json:
                print_lines(f"{name}: valid, not created")
            return
        made.append(cluster.topic(name))
        if not options.json:
            counts = (len(made[-1].partitions), "partition"), (made[-1].replication_factor, "replica")
            print_lines(f"{name}: created with {' and '.join(count_text(*count) for count in counts)}")

    with connected(options) as cluster:
        status = for_each(options.topic, create)
    if options.json:
        print_lines(json_document({"created": [_topic_json(topic) for topic in made]}))
    return status


def run_delete(options: argparse.Namespace) -> int:
    deleted: list[str] = []

    def delete(name: str) -> None:
        try:
            delete_topic(cluster, name)
        except UnknownTopic:
            if not options.if_exists:
                raise
            return
        deleted.append(name)
        if not options.json:
            print_lines(f"{name}: deleted")

    with connected(options) as cluster:
        status = for_each(options.topic, delete)
    if options.json:
        print_lines(json_document({"deleted": deleted}))
    return status


def run_alter(options: argparse.Namespace) -> int:
    altered: list[TopicMetadata] = []

    def alter(name: str) -> None:
        before = len(cluster.topic(name).partitions)
        add_partitions(cluster, name, options.partitions, validate_only=options.dry_run)
        if options.dry_run:
            if not options.json:
                print_lines(
                    f"{name}: valid, not changed: {count_text(options.partitions, 'partition')} instead of {before}"
                )
            return
        altered.append(cluster.topic(name))
        if not options.json:
            print_lines(f"{name}: {count_text(options.partitions, 'partition')} instead of {before}")

    with connected(options) as cluster:
        status = for_each(options.topic, alter)
    if options.json:
        print_lines(json_document({"altered": [_topic_json(topic) for topic in altered]}))
    return status


def _topic_json(topic: TopicMetadata) -> dict[str, Any]:
    return {
        "name": topic.name,
        "id": _id_text(topic) if topic.has_id else None,
        "internal": topic.is_internal,
        "partitionCount": len(topic.partitions),
        "replicationFactor": topic.replication_factor,
    }


def _partition_json(partition: PartitionMetadata) -> dict[str, Any]:
    return {
        "partition": partition.partition.partition,
        "leader": None if partition.leader == NO_LEADER else partition.leader,
        "leaderEpoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "offlineReplicas": list(partition.offline_replicas),
    }


def _id_text(topic: TopicMetadata) -> str | None:
    return str(TopicId(uuid.UUID(bytes=topic.topic_id))) if topic.has_id else None


def _ids_text(ids: Iterable[int]) -> str | None:
    return ",".join(map(str, ids)) or None
