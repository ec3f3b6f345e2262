"""`tailrace reassign`: plan, apply, status, cancel and unthrottle moves of partitions."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tailrace.cli.cluster.assignment_file import assignment_text, read_assignment
from tailrace.cli.connection.connecting import connected
from tailrace.cli.errors import CommandError
from tailrace.cli.output import count_text, json_document, print_lines, table
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.reassignments import alter_assignment, plan_assignment, remove_throttle, set_throttle
from tailrace.client.cluster.replicas import Reassignment, reassignments
from tailrace.model.ids import BrokerId, TopicPartition

_POLL_S: Final = 0.5
MOVING: Final = 1


def run_plan(options: argparse.Namespace) -> int:
    if options.current and (options.brokers or options.replication_factor):
        raise CommandError("--current prints the present replicas: give it without --brokers and --replication-factor")
    with connected(options) as cluster:
        topics = [cluster.topic(name) for name in dict.fromkeys(options.topic)]
        if options.current:
            present = {one.partition: one.replicas for topic in topics for one in topic.partitions}
            print_lines(assignment_text(present))
            return 0
        brokers = options.brokers or sorted(cluster.metadata.brokers)
        _check_brokers(cluster, brokers)
        factor = options.replication_factor or max(topic.replication_factor for topic in topics)
        if factor > len(brokers):
            raise CommandError(f"{count_text(factor, 'replica')} need as many brokers, but {len(brokers)} can be used")
        plan = plan_assignment(topics, brokers, options.replication_factor)
    print_lines(assignment_text(plan))
    return 0


def run_apply(options: argparse.Namespace) -> int:
    plan = read_assignment(options.plan)
    with connected(options) as cluster:
        _check_brokers(cluster, {node for replicas in plan.values() for node in replicas})
        return apply_plan(options, cluster, plan)


def apply_plan(
    options: argparse.Namespace, cluster: ClusterClient, plan: Mapping[TopicPartition, Sequence[BrokerId]]
) -> int:
    """Start the moves of a plan, report them, and return the exit status."""
    present = _present(cluster, plan)
    moves = {one: replicas for one, replicas in plan.items() if list(present[one]) != replicas}
    is_over = False
    if moves and not options.dry_run:
        if options.throttle is not None:
            set_throttle(cluster, present, moves, options.throttle)
        alter_assignment(cluster, moves)
        is_over = options.wait is not None and _wait(cluster, moves, options.wait)
        if is_over and options.throttle is not None:
            remove_throttle(cluster, _topics(moves))
    _report_moves(options, present, moves, is_over=is_over)
    return MOVING if options.wait is not None and moves and not is_over and not options.dry_run else 0


def _report_moves(
    options: argparse.Namespace,
    present: Mapping[TopicPartition, Sequence[BrokerId]],
    moves: Mapping[TopicPartition, Sequence[BrokerId]],
    *,
    is_over: bool,
) -> None:
    if options.json:
        listed = [{**one._asdict(), "from": list(present[one]), "to": list(to)} for one, to in moves.items()]
        print_lines(json_document({"moves": listed, "dryRun": options.dry_run, "finished": is_over or not moves}))
        return
    if not moves:
        print_lines("nothing to move: all partitions already have the planned replicas")
        return
    rows = [(one.topic, one.partition, _ids(present[one]), _ids(to)) for one, to in moves.items()]
    print_lines(*table(["<TOPIC", "PARTITION", "<FROM", "<TO"], rows))
    count = count_text(len(moves), "move")
    if options.dry_run:
        print_lines(f"dry run: nothing was changed; {count} would start")
    elif is_over:
        print_lines(f"{count} finished")
    else:
        after = "" if options.throttle is None else "; run `tailrace reassign unthrottle` when they have ended"
        print_lines(f"{count} started: `tailrace reassign status` shows them{after}")


def run_status(options: argparse.Namespace) -> int:
    plan = None if options.plan is None else read_assignment(options.plan)
    with connected(options) as cluster:
        moving = reassignments(cluster)
        present = {} if plan is None else _present(cluster, plan)
    if plan is not None:
        moving = {one: found for one, found in moving.items() if one in plan}
    different = [one for one, to in (plan or {}).items() if one not in moving and list(present[one]) != to]
    if options.json:
        document: dict[str, Any] = {"moving": _json(moving)}
        if plan is not None:
            document["notMoved"] = [one._asdict() for one in different]
        print_lines(json_document(document))
    else:
        _show(moving)
        if plan is not None:
            done = len(plan) - len(moving) - len(different)
            print_lines(f"{done} of {count_text(len(plan), 'partition')} have the replicas of the plan")
        for one in different:
            print_lines(f"{one}: not moving, and its replicas are {_ids(present[one])}")
    return MOVING if plan is not None and (moving or different) else 0


def run_cancel(options: argparse.Namespace) -> int:
    plan = None if options.plan is None else read_assignment(options.plan)
    with connected(options) as cluster:
        moving = {one: found for one, found in reassignments(cluster).items() if plan is None or one in plan}
        if moving and options.yes:
            alter_assignment(cluster, dict.fromkeys(moving))
            remove_throttle(cluster, _topics(moving))
    if options.json:
        print_lines(json_document({"moving": _json(moving), "cancelled": options.yes}))
        return 0
    _show(moving)
    if moving:
        count = count_text(len(moving), "move")
        print_lines(f"{count} cancelled" if options.yes else f"nothing was changed; add --yes to cancel {count}")
    return 0


def run_unthrottle(options: argparse.Namespace) -> int:
    topics = _topics(read_assignment(options.plan))
    with connected(options) as cluster:
        remove_throttle(cluster, topics)
    if options.json:
        print_lines(json_document({"unthrottled": topics}))
    else:
        print_lines(f"the throttle of {', '.join(topics)} and of all brokers is removed")
    return 0


def _wait(cluster: ClusterClient, moves: Iterable[TopicPartition], wait_s: float) -> bool:
    """Return True when no partition is moving, or False when the time is over."""
    deadline = time.monotonic() + wait_s
    wanted = set(moves)
    while wanted & set(reassignments(cluster)):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _check_brokers(cluster: ClusterClient, wanted: Iterable[BrokerId]) -> None:
    missing = sorted(set(wanted) - set(cluster.metadata.brokers))
    if missing:
        raise CommandError(
            f"there is no active broker {missing[0]}; active brokers: {_ids(sorted(cluster.metadata.brokers))}"
        )


def _present(cluster: ClusterClient, plan: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    return {one: cluster.topic(one.topic).partition(one.partition).replicas for one in plan}


def _topics(partitions: Iterable[TopicPartition]) -> list[str]:
    return list(dict.fromkeys(one.topic for one in partitions))


def _show(moving: Mapping[TopicPartition, Reassignment]) -> None:
    if not moving:
        print_lines("no partition is being moved")
        return
    rows = [
        (one.topic, one.partition, _ids(found.replicas), _ids(found.adding), _ids(found.removing))
        for one, found in sorted(moving.items())
    ]
    print_lines(*table(["<TOPIC", "PARTITION", "<REPLICAS", "<ADDING", "<REMOVING"], rows))


def _json(moving: Mapping[TopicPartition, Reassignment]) -> list[dict[str, Any]]:
    return [{**one._asdict(), **found._asdict()} for one, found in sorted(moving.items())]


def _ids(ids: Iterable[BrokerId]) -> str:
    return ",".join(map(str, ids)) or "-"
