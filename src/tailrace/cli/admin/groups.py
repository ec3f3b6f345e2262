"""`tailrace groups`: list, describe, reset and delete the groups of a cluster, and their offsets."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import Any

from tailrace.cli.admin.group_lag import PartitionLag, committed_or_started, read_group
from tailrace.cli.connection.connecting import bootstrap_text, connected, for_each
from tailrace.cli.errors import CommandError
from tailrace.cli.output import count_text, json_document, print_lines, table
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.coordinators import Coordinators
from tailrace.client.errors import Refused
from tailrace.client.groups.group_description import DescribedGroup, GroupMember
from tailrace.client.groups.group_offsets import OffsetAndMetadata, commit_offsets
from tailrace.client.groups.group_reset import ResetTarget, plan_reset
from tailrace.client.groups.groups import delete_group, delete_offsets, describe_group, list_groups
from tailrace.client.groups.share_groups import SHARE_PROTOCOL, alter_share_offsets, delete_share_offsets
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition


def run_list(options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        groups = list_groups(cluster)
    states = {one.lower() for one in options.state or ()}
    shown = [group for group in groups if not states or group.state.lower() in states]
    if options.json:
        print_lines(json_document({"groups": [_listed_json(group._asdict()) for group in shown]}))
    elif shown:
        rows = [(group.group_id, group.type or None, group.state or None, group.protocol_type) for group in shown]
        print_lines(*table(["<GROUP", "<TYPE", "<STATE", "<PROTOCOL"], rows))
    else:
        print_lines(f"there are no groups at {bootstrap_text(cluster)}")
    return 0


def run_describe(options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        described = [read_group(cluster, name, with_times=options.times) for name in dict.fromkeys(options.group)]
    if options.json:
        print_lines(
            json_document({"groups": [_group_json(group, lags, with_times=options.times) for group, lags in described]})
        )
        return 0
    for number, (group, lags) in enumerate(described):
        if number:
            print_lines("")
        _show(group, lags, with_times=options.times)
    return 0


def run_delete(options: argparse.Namespace) -> int:
    deleted: list[str] = []

    def delete(name: str) -> None:
        try:
            delete_group(coordinators, name)
        except Refused as error:
            if not (options.if_exists and error.code == ErrorCode.GROUP_ID_NOT_FOUND):
                raise
            return
        deleted.append(name)
        if not options.json:
            print_lines(f"{name}: deleted")

    with connected(options) as cluster:
        coordinators = Coordinators(cluster)
        status = for_each(options.group, delete)
    if options.json:
        print_lines(json_document({"deleted": deleted}))
    return status


def run_reset(options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        coordinators = Coordinators(cluster)
        group = described_or_none(coordinators, options.group)
        is_share = options.share if group is None else group.type == SHARE_PROTOCOL
        committed = committed_or_started(coordinators, options.group, is_share)
        known = {one: offset for one, offset in committed.items() if offset is not None}
        partitions = _chosen(cluster, options, committed)
        if not partitions:
            raise CommandError(f"group {options.group} has no committed offsets; name topics with --topic")
        target = ResetTarget(
            to_earliest=options.to_earliest,
            to_latest=options.to_latest,
            to_current=options.to_current,
            to_offset=options.to_offset,
            to_time_ms=_time_ms(options),
            shift_by=options.shift_by,
        )
        planned = plan_reset(cluster, partitions, target, known)
        if options.execute:
            check_without_members(group)
            if is_share:
                alter_share_offsets(coordinators, options.group, planned)
            else:
                commit_offsets(
                    coordinators, options.group, {one: OffsetAndMetadata(to, "") for one, to in planned.items()}
                )
    if options.json:
        offsets = [{**partition._asdict(), "from": known.get(partition), "to": to} for partition, to in planned.items()]
        print_lines(json_document({"group": options.group, "executed": options.execute, "offsets": offsets}))
        return 0
    rows = [(partition.topic, partition.partition, known.get(partition), to) for partition, to in planned.items()]
    print_lines(*table(["<TOPIC", "PARTITION", "FROM", "TO"], rows))
    if not options.execute:
        print_lines("dry run: nothing was changed; add --yes to reset the offsets")
    return 0


def run_delete_offsets(options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        coordinators = Coordinators(cluster)
        group = describe_group(coordinators, options.group)
        if group.type == SHARE_PROTOCOL:
            if any(numbers is not None for _, numbers in options.topic):
                raise CommandError(
                    "offsets of a share group are deleted by topic: omit the partitions in --topic TOPIC:N"
                )
            delete_share_offsets(coordinators, options.group, dict.fromkeys(name for name, _ in options.topic))
        else:
            delete_offsets(coordinators, options.group, _chosen(cluster, options, {}))
    names = list(dict.fromkeys(name for name, _ in options.topic))
    if options.json:
        print_lines(json_document({"group": options.group, "topics": names}))
    else:
        print_lines(f"{options.group}: offsets of {', '.join(names)} deleted")
    return 0


def described_or_none(coordinators: Coordinators, group_id: str) -> DescribedGroup | None:
    try:
        return describe_group(coordinators, group_id)
    except Refused as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise


def check_without_members(group: DescribedGroup | None) -> None:
    """Raise an error if the group has members: they would continue at their positions, and commit those."""
    if group is not None and group.has_members:
        raise CommandError(
            f"group {group.group_id} has members (its state is {group.state}): stop them first", status=1
        )


def _time_ms(options: argparse.Namespace) -> int | None:
    if options.by_duration is not None:
        return max(int(time.time() * 1000) - int(options.by_duration), 0)
    return None if options.to_datetime is None else int(options.to_datetime)


def _chosen(
    cluster: ClusterClient, options: argparse.Namespace, known: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Return the partitions of `--topic NAME` or `--topic NAME:0,1`; without --topic, those with committed offsets."""
    if not options.topic:
        return sorted(known)
    chosen: dict[TopicPartition, None] = {}
    for name, numbers in options.topic:
        partitions = cluster.topic(name).topic_partitions
        for partition in partitions:
            if numbers is None or partition.partition in numbers:
                chosen[partition] = None
        missing = set(numbers or ()) - {partition.partition for partition in partitions}
        if missing:
            raise CommandError(f"topic {name} has no partition {min(missing)}")
    return list(chosen)


def _show(group: DescribedGroup, lags: list[PartitionLag], *, with_times: bool) -> None:
    facts = [group.group_id, group.type, group.state, count_text(len(group.members), "member")]
    print_lines("  ·  ".join([*facts, group.protocol] if group.protocol else facts))
    now_ms = int(time.time() * 1000)
    rows = [
        (
            one.partition.topic,
            one.partition.partition,
            one.committed,
            one.end,
            one.lag,
            *([one.lag_s(now_ms)] if with_times else []),
            *_member_cells(one.members),
        )
        for one in lags
    ]
    if rows:
        heads = [
            "<TOPIC",
            "PARTITION",
            "COMMITTED",
            "END",
            "LAG",
            *(["SECONDS"] if with_times else []),
            "<MEMBER",
            "<HOST",
            "<CLIENT",
        ]
        print_lines(*table(heads, rows, indent="  "))
    idle = [member for member in group.members if not member.partitions]
    for member in idle:
        print_lines(f"  {member.member_id} ({member.host}, {member.client_id}) has no partitions")


def _member_cells(members: tuple[GroupMember, ...]) -> Iterable[str | None]:
    if not members:
        return (None, None, None)
    hosts, clients = ({one.host: None for one in members}, {one.client_id: None for one in members})
    return (", ".join(one.member_id for one in members), ", ".join(hosts), ", ".join(clients))


def _group_json(group: DescribedGroup, lags: list[PartitionLag], *, with_times: bool) -> dict[str, Any]:
    now_ms = int(time.time() * 1000)
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "protocolType": group.protocol_type,
        "protocol": group.protocol,
        "members": [
            {
                "memberId": member.member_id,
                "instanceId": member.instance_id,
                "clientId": member.client_id,
                "host": member.host,
                "partitions": [partition._asdict() for partition in member.partitions],
            }
            for member in group.members
        ],
        "partitions": [
            {
                **one.partition._asdict(),
                "committed": one.committed,
                "end": one.end,
                "lag": one.lag,
                **({"oldestUnread": one.oldest_unread, "lagSeconds": one.lag_s(now_ms)} if with_times else {}),
                "memberId": one.members[0].member_id if len(one.members) == 1 else None,
                "memberIds": [member.member_id for member in one.members],
            }
            for one in lags
        ],
    }


def _listed_json(fields: dict[str, Any]) -> dict[str, Any]:
    names = {"group_id": "group", "protocol_type": "protocolType"}
    return {names.get(name, name): value for name, value in fields.items()}
