"""Loads into the directory of a running Tailrace broker: the job builds segments, and the broker adopts them.

End offsets, leader epochs and configs are queried from the broker. The finished logs are moved into the partitions'
folders, and a proposal file is written (`log/directories/bulk_load_proposal.py`). The broker checks the segments. If
records were written to a partition in the meantime, or its leader changed, the broker refuses the partition, and
nothing of it is loaded.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.configs import Resource, ResourceType, describe_configs
from tailrace.client.offsets import latest_offsets
from tailrace.log.directories.bulk_load_proposal import DONE, FOLDER, PROPOSALS, Outcome, answered, propose
from tailrace.log.disk.files import DiskFiles, join
from tailrace.model.configs.topic_settings import parse_topic_config
from tailrace.model.ids import LeaderEpoch, Offset, TopicPartition
from tailrace.model.topic_config import TopicConfig
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.job import run_tasks
from tailrace.spark.jobs.load.build import BuiltLog, build_log
from tailrace.spark.jobs.load.chunks import Chunk, ChunkPlan
from tailrace.spark.jobs.load.target import LoadReport, build_task, built_report, created_topics
from tailrace.spark.jobs.place import NO_PROPERTIES, ClientProperties, cluster_at

BROKER_TIMEOUT_S = 60.0
_POLL_S = 0.1
_SETTINGS = (
    "cleanup.policy", "index.interval.bytes", "max.compaction.lag.ms", "min.compaction.lag.ms", "segment.bytes",
    "segment.index.bytes", "segment.ms",
)  # fmt: skip


class RemoteLogEnd(NamedTuple):
    end_offset: Offset
    leader_epoch: LeaderEpoch
    config: TopicConfig


def propose_load(
    spark: Any,
    path: str,
    bootstrap: str,
    grouped: Mapping[TopicPartition, tuple[Chunk, ...]],
    counts: Mapping[str, int],
    config: Mapping[str, str],
    plan: ChunkPlan,
    client: ClientProperties = NO_PROPERTIES,
) -> LoadReport:
    files = DiskFiles()
    if files.exists(join(path, PROPOSALS)) or files.exists(join(path, DONE)):
        raise JobError(f"another load in {path} waits for the broker; try again later")
    with cluster_at(bootstrap, client) as cluster, created_topics(cluster, bootstrap, counts, config) as missing:
        log_ends = _log_ends(cluster, grouped)
        tasks = [build_task(partition, chunks, log_ends[partition], plan) for partition, chunks in grouped.items()]
        for task in tasks:
            if not os.path.isdir(os.path.join(path, str(task.partition))):
                raise JobError(
                    f"{task.partition} of {bootstrap} is not in {path}: give a data directory of that broker"
                )
        built: list[BuiltLog] = run_tasks(spark, tasks, build_log, label="load: batches to segments")
        try:
            for one in built:
                os.rename(one.folder, os.path.join(path, str(one.partition), FOLDER))
            propose(files, path, {one.partition: one.leader_epoch for one in built})
            outcomes = _wait(files, path)
        except OSError as error:
            raise JobError(f"{error.filename2 or error.filename}: {error.strerror}") from None
        finally:
            _tidy_up(files, path, built)
        refused = [outcome.refusal for outcome in outcomes.values() if outcome.refusal is not None]
        if refused:
            taken = sorted(str(partition) for partition, outcome in outcomes.items() if outcome.refusal is None)
            rest = f" ({', '.join(taken)} loaded)" if taken and not missing else ""
            raise JobError(f"the broker refused the load: {refused[0]}{rest}", status=1)
    return built_report(built, missing)


def _log_ends(cluster: ClusterClient, partitions: Mapping[TopicPartition, Any]) -> dict[TopicPartition, RemoteLogEnd]:
    ends = latest_offsets(cluster, partitions)
    topics = {name: cluster.topic(name, fresh=True) for name in dict.fromkeys(one.topic for one in partitions)}
    configs = {}
    for name in topics:
        entries = describe_configs(cluster, Resource(ResourceType.TOPIC, name), _SETTINGS)
        configs[name] = parse_topic_config({one.name: one.value for one in entries if one.value is not None})
    return {
        one: RemoteLogEnd(ends[one], topics[one.topic].partition(one.partition).leader_epoch, configs[one.topic])
        for one in partitions
    }


def _wait(files: DiskFiles, path: str) -> dict[TopicPartition, Outcome]:
    deadline = time.monotonic() + BROKER_TIMEOUT_S
    while True:
        found = answered(files, path)
        if found is not None:
            return found
        if time.monotonic() > deadline:
            raise JobError(f"no Tailrace broker has processed the load in {path} within {BROKER_TIMEOUT_S:.0f} s")
        time.sleep(_POLL_S)


def _tidy_up(files: DiskFiles, path: str, built: list[BuiltLog]) -> None:
    """Remove the files of the load that the broker did not adopt."""
    files.remove(join(path, PROPOSALS))
    files.remove(join(path, DONE))
    for one in built:
        folder = join(path, str(one.partition), FOLDER)
        if files.exists(folder):
            files.remove_directory(folder)
