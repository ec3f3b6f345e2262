"""`tailrace migrate`: hand the metadata of a standalone node, or of a controller of ours, to Kafka's controllers."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tailrace.broker.config.role_config import parse_voter
from tailrace.cli.cluster.migrate_properties import broker_properties, controller_properties, properties_text
from tailrace.cli.connection.properties_file import read_properties
from tailrace.cli.errors import CommandError
from tailrace.cli.log.partition_choice import now_ms
from tailrace.cli.output import count_text, print_lines
from tailrace.cli.serving.serve import parse_overrides
from tailrace.log.disk import file_names
from tailrace.log.disk.checkpoints import CorruptCheckpoint
from tailrace.log.disk.files import DiskFiles, Files, join
from tailrace.log.disk.overlay_files import OverlayFiles
from tailrace.metadata.image.registrations import InconsistentMetadata
from tailrace.metadata.storage import migration as steps
from tailrace.metadata.storage.metadata_snapshot import UnreadableSnapshot
from tailrace.metadata.storage.migration import CannotMigrate, Migration, NewController, NodeMetadata
from tailrace.metadata.storage.storage_format import METADATA_FOLDER
from tailrace.model.errors import KafkaError
from tailrace.model.topic_config import InvalidConfig
from tailrace.node.serving import random_id
from tailrace.records.batch import CorruptBatch

METADATA_COPY = "metadata-before"  # a copy of the old metadata log
_UNREADABLE = (CorruptBatch, CorruptCheckpoint, InconsistentMetadata, KafkaError, UnreadableSnapshot)


def run(options: argparse.Namespace) -> int:
    settings = _settings(options)
    path = _metadata_directory(settings)
    controllers = _controllers(options.controller, os.path.abspath(options.to))
    files = DiskFiles()
    try:
        with _locked(files, path):
            node = steps.read_node_metadata(OverlayFiles(files), path, now_ms())  # reads only; writes stay in memory
            if not node.is_alone and steps.is_committed(node, controllers):
                return _resume(files, node, controllers, options)
            plan = _plan(node, controllers, settings, options)
            steps.check_targets(files, controllers)
            if options.dry_run:
                print_lines(*_summary(plan, options.to), "", "dry run: nothing was changed")
                return 0
            _carry_out(files, plan, settings, options.to)
    except CannotMigrate as error:
        raise CommandError(str(error)) from error
    except _UNREADABLE as error:
        raise CommandError(f"the metadata in {path} cannot be read: {error}") from error
    print_lines(*_summary(plan, options.to), "", *_next(options.to, controllers, node))
    return 0


def _plan(
    node: NodeMetadata, controllers: Sequence[NewController], settings: dict[str, str], options: argparse.Namespace
) -> Migration:
    names = settings.get("controller.listener.names", "CONTROLLER")
    return steps.plan_migration(
        node,
        controllers,
        is_dynamic=None if options.quorum is None else options.quorum == "dynamic",
        listener=names.partition(",")[0].strip().upper(),
        static_config=settings,
        new_id=random_id,
        now_ms=now_ms(),
    )


def _carry_out(files: Files, plan: Migration, settings: dict[str, str], target: str) -> None:
    target = os.path.abspath(target)
    files.make_directory(target)
    _copy_metadata_log(files, join(plan.node.path, METADATA_FOLDER), join(target, METADATA_COPY))
    steps.prepare(files, plan, now_ms())
    for one in plan.controllers:
        text = properties_text(controller_properties(plan, one, settings), f"controller {one.node_id}")
        files.write(_properties(one), text.encode(), sync=True)
    if not plan.node.is_only_controller:
        text = properties_text(broker_properties(plan, settings), f"broker {plan.node.identity.node_id}")
        files.write(join(target, "broker.properties"), text.encode(), sync=True)
    files.sync_directory(target)
    steps.commit(files, plan, now_ms())
    steps.finish(files, plan.node, plan.controllers)


def _resume(files: Files, node: NodeMetadata, controllers: Sequence[NewController], options: argparse.Namespace) -> int:
    """Finish a migration whose old directory is converted, but possibly not all controllers' directories."""
    if options.dry_run:
        print_lines(
            f"{node.path} is migrated to these controllers; without --dry-run, missing directories are completed"
        )
        return 0
    finished = steps.finish(files, node, controllers)
    state = "is now complete" if finished else "was complete already"
    print_lines(f"the migration of {node.path} {state}", "", *_next(options.to, controllers, node))
    return 0


def _copy_metadata_log(files: Files, folder: str, target: str) -> None:
    """Copy the metadata log, so that the migration can be undone before a controller is started."""
    if files.exists(target):
        files.remove_directory(target)
    files.make_directory(target)
    for entry in files.entries(folder):
        if not entry.is_directory:
            files.write(join(target, entry.name), files.read(join(folder, entry.name)), sync=True)
    files.sync_directory(target)


# Options


def _settings(options: argparse.Namespace) -> dict[str, str]:
    """Return the node's settings from --config, -o and --data."""
    settings = read_properties(options.config) if options.config else {}
    settings |= parse_overrides(options.override)
    if options.data:
        settings["log.dirs"] = ",".join(os.path.abspath(one) for one in options.data)
    if "log.dirs" not in settings:
        if "log.dir" not in settings:
            raise CommandError("no data directory: give --data DIR, or log.dirs in --config FILE")
        settings["log.dirs"] = settings["log.dir"]
    return settings


def _metadata_directory(settings: dict[str, str]) -> str:
    paths = [one.strip() for one in settings["log.dirs"].split(",")]
    if "metadata.log.dir" in settings:
        return settings["metadata.log.dir"]
    having = [one for one in paths if os.path.isdir(join(one, METADATA_FOLDER))]
    return having[0] if having else paths[0]


def _controllers(addresses: Sequence[str], target: str) -> list[NewController]:
    found = []
    for text in addresses:
        try:
            number, (host, port) = parse_voter(text)
        except InvalidConfig:
            raise CommandError(f"--controller {text} is not ID@HOST:PORT, such as 3000@127.0.0.1:9093") from None
        found.append(NewController(number, host, port, join(target, f"controller-{number}", "data")))
    return found


@contextmanager
def _locked(files: DiskFiles, path: str) -> Iterator[None]:
    """Hold the lock of a directory, so that no broker can start on it."""
    if not os.path.isdir(path):
        raise CommandError(f"{path} is not a directory")
    lock = join(path, file_names.DIRECTORY_LOCK)
    was_there = files.exists(lock)
    try:
        file_lock = files.lock(lock)
    except BlockingIOError:
        raise CommandError(f"{path} is in use: a broker holds its .lock. Stop the broker first") from None
    try:
        yield
    finally:
        file_lock.close()
        if not was_there:
            files.remove(lock)


# Output


def _properties(controller: NewController) -> str:
    return join(os.path.dirname(controller.path), "controller.properties")


def _summary(plan: Migration, target: str) -> list[str]:
    image, node = plan.image, plan.node
    partitions = sum(len(topic.partitions) for topic in image.topics.values())
    role = f"becomes a broker: {join(target, 'broker.properties')}"
    if node.is_only_controller:
        role = "is no longer a controller, and its directory is not needed any more"
    lines = [
        f"node {node.identity.node_id} of cluster {node.identity.cluster_id} in {node.path}",
        f"  {count_text(len(image.topics), 'topic')}, {count_text(partitions, 'partition')}, "
        f"{count_text(len(image.configs), 'resource')} with configs, {count_text(len(image.client_quotas), 'quota')}, "
        f"{count_text(len(image.acls), 'ACL')}, {count_text(len(image.scram_credentials), 'credential')}",
        f"  {role}",
        *(f"controller {one.node_id} at {one.host}:{one.port}: {_properties(one)}" for one in plan.controllers),
        f"the {'dynamic' if plan.kraft_version else 'static'} quorum begins after offset {image.offset}, "
        f"in an epoch after {image.epoch}",
    ]
    if not node.was_clean and not node.is_only_controller:
        lines.append("the node was not stopped cleanly: it will recover its logs at the next start")
    if plan.other_brokers:
        others = ", ".join(map(str, plan.other_brokers))
        lines.append(f"brokers {others} need the address of the new controllers in their properties as well")
        if node.is_only_controller:
            lines.append("  (not if a new controller has the address of the old one)")
    lines.append(f"a copy of the old metadata log is in {join(target, METADATA_COPY)}")
    return lines


def _next(target: str, controllers: Sequence[NewController], node: NodeMetadata) -> list[str]:
    lines = ["next, start the controllers with Apache Kafka 4.3:"]
    lines += [f"  bin/kafka-server-start.sh {_properties(one)}" for one in controllers]
    if len(controllers) > 1:
        lines.append("  (for a controller on another machine: copy its directory there first, and set log.dirs)")
    if node.is_only_controller:
        return lines
    return [*lines, "then start the broker:", f"  tailrace serve --config {join(target, 'broker.properties')}"]
