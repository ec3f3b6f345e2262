"""A ClusterState as lines for people, and as JSON."""

from __future__ import annotations

from typing import Any, Final

from tailrace.cli.output import count_text, size_text, table
from tailrace.client.cluster.cluster_state import BrokerState, ClusterState, PartitionState
from tailrace.client.cluster.quorum import Quorum, QuorumReplica
from tailrace.client.errors import code_name

_LISTED: Final = 20


def show(state: ClusterState, problems: list[str], *, with_all: bool) -> list[str]:
    replicas = sum(len(one.replicas) for one in state.partitions)
    topics = len({one.partition.topic for one in state.partitions})
    facts = [
        f"cluster {state.cluster_id or 'without an id'}",
        f"1 node with {count_text(len(state.brokers), 'shard')}"
        if state.has_shards
        else count_text(len(state.brokers), "broker"),
        count_text(topics, "topic"),
        count_text(len(state.partitions), "partition"),
        count_text(replicas, "replica"),
    ]
    lines = ["  ·  ".join(facts)]
    lines += [f"  ! {problem}" for problem in problems] or ["  healthy"]
    if state.quorum is not None:
        lines += ["", *_quorum(state.quorum)]
    lines += ["", *_brokers(state)]
    lines += ["", *_partitions(state, with_all=with_all)]
    return lines


def _quorum(quorum: Quorum) -> list[str]:
    heads = ["QUORUM", "<ROLE", "<ADDRESS", "END", "LAG", "CAUGHT UP"]
    rows = [
        (
            one.node_id,
            role if one.node_id != quorum.leader else f"leader, epoch {quorum.epoch}",
            quorum.addresses.get(one.node_id),
            one.end_offset if one.end_offset >= 0 else None,
            quorum.lag(one),
            _ago(quorum.behind_ms(one)),
        )
        for role, replicas in (("voter", quorum.voters), ("observer", _latest(quorum.observers)))
        for one in replicas
    ]
    return table(heads, rows)


def _latest(replicas: tuple[QuorumReplica, ...]) -> list[QuorumReplica]:
    """Return one replica per node id. A node that restarted with another directory has several; take the latest."""
    in_time = sorted(replicas, key=lambda one: one.last_caught_up_ms)
    return sorted({one.node_id: one for one in in_time}.values())


def _brokers(state: ClusterState) -> list[str]:
    heads = [
        "SHARDS" if state.has_shards else "BROKERS",
        "<ADDRESS",
        "<RACK",
        "<STATE",
        "LEADS",
        "REPLICAS",
        "OUT OF SYNC",
        "MAX LAG",
        "SIZE",
        "FREE",
    ]
    rows = [
        (
            one.node_id,
            one.address,
            one.rack,
            _broker_status(one),
            one.leads,
            one.replicas,
            one.out_of_sync,
            None if one.is_fenced else one.max_lag,
            None if one.size is None else size_text(one.size),
            _free(one),
        )
        for one in state.brokers
    ]
    return table(heads, rows)


def _broker_status(broker: BrokerState) -> str:
    if broker.is_fenced:
        return "fenced"
    if broker.error:
        return "silent"
    return "disk failed" if any(one.error_code for one in broker.directories) else "active"


def _free(broker: BrokerState) -> str | None:
    """Return the free space of a broker's volumes. Directories with equal numbers are on one volume and count once."""
    volumes = {(one.total_bytes, one.usable_bytes) for one in broker.directories if one.usable_bytes >= 0}
    return size_text(sum(usable for _, usable in volumes)) if volumes else None


def _partitions(state: ClusterState, *, with_all: bool) -> list[str]:
    elsewhere = sum(one.is_not_led_by_preferred_replica for one in state.partitions)
    counts = [
        (len(state.offline), "without a leader"),
        (len(state.under_replicated), "under-replicated"),
        (len(state.under_min_isr), "under min.insync.replicas"),
        (elsewhere, "not led by the preferred replica"),
        (len(state.moving), "being reassigned"),
    ]
    lines = ["partitions: " + ", ".join(f"{count:,} {what}" for count, what in counts)]
    laggard = max(state.partitions, key=lambda one: one.max_lag, default=None)
    if laggard is not None and laggard.max_lag:
        lines.append(f"largest lag of a follower: {count_text(laggard.max_lag, 'record')}, {laggard.partition}")
    chosen = list(state.partitions) if with_all else _notable(state)
    listed = chosen if with_all else chosen[:_LISTED]
    if listed:
        heads = ["<PARTITION", "LEADER", "EPOCH", "<REPLICAS", "<IN SYNC", "MIN", "<LAG OF EACH FOLLOWER", "<STATE"]
        lines += ["", *table(heads, [_row(one) for one in listed])]
    if len(chosen) > len(listed):
        lines.append(f"… and {len(chosen) - len(listed):,} more: --all lists every partition")
    return lines


def _notable(state: ClusterState) -> list[PartitionState]:
    """Return the partitions that need attention, the most urgent first."""
    found = [
        one
        for one in state.partitions
        if one.is_offline or one.is_under_replicated or one.is_under_min_isr or one.moving or one.max_lag
    ]
    found.sort(
        key=lambda one: (not one.is_offline, not one.is_under_min_isr, not one.is_under_replicated, -one.max_lag)
    )
    return found


def _row(one: PartitionState) -> tuple[object, ...]:
    return (
        one.partition,
        one.leader,
        one.leader_epoch,
        _ids(one.replicas),
        _ids(one.isr),
        one.min_isr,
        "  ".join(f"{node}: {'?' if lag is None else f'{lag:,}'}" for node, lag in one.lags.items()) or None,
        ", ".join(_partition_status(one)) or "in sync",
    )


def _partition_status(one: PartitionState) -> list[str]:
    words = []
    if one.is_offline:
        words.append("no leader")
    if one.is_under_min_isr:
        words.append("under min.insync.replicas")
    elif one.is_under_replicated:
        words.append("under-replicated")
    if one.moving is not None:
        words.append(f"+{_ids(one.moving.adding) or '-'} −{_ids(one.moving.removing) or '-'}")
    return words


def _ids(ids: tuple[int, ...]) -> str | None:
    return ",".join(map(str, ids)) or None


def _ago(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    return "now" if milliseconds < 1_000 else f"{milliseconds // 1_000:,} s ago"


# ----------------------------------------------------------------------------------------------------------------- JSON


def state_json(state: ClusterState, problems: list[str], *, with_all: bool) -> dict[str, Any]:
    partitions = state.partitions if with_all else _notable(state)
    return {
        "clusterId": state.cluster_id,
        "healthy": not problems,
        "problems": problems,
        "hasShards": state.has_shards,
        "quorum": None if state.quorum is None else _quorum_json(state.quorum),
        "brokers": [_broker_json(one) for one in state.brokers],
        "counts": {
            "topics": len({one.partition.topic for one in state.partitions}),
            "partitions": len(state.partitions),
            "replicas": sum(len(one.replicas) for one in state.partitions),
            "offline": len(state.offline),
            "underReplicated": len(state.under_replicated),
            "underMinIsr": len(state.under_min_isr),
            "notLedByPreferred": sum(one.is_not_led_by_preferred_replica for one in state.partitions),
            "reassigning": len(state.moving),
            "maxLag": max((one.max_lag for one in state.partitions), default=0),
        },
        "partitions": [_partition_json(one) for one in partitions],
    }


def _quorum_json(quorum: Quorum) -> dict[str, Any]:
    def replica(one: QuorumReplica) -> dict[str, Any]:
        address = quorum.addresses.get(one.node_id)
        return {
            "id": one.node_id,
            "directoryId": one.directory_id or None,
            "address": None if address is None else str(address),
            "logEndOffset": one.end_offset if one.end_offset >= 0 else None,
            "lag": quorum.lag(one),
            "caughtUpMsAgo": quorum.behind_ms(one),
        }

    return {
        "leader": quorum.leader,
        "epoch": quorum.epoch,
        "highWatermark": quorum.high_watermark,
        "voters": [replica(one) for one in quorum.voters],
        "observers": [replica(one) for one in quorum.observers],
    }


def _broker_json(broker: BrokerState) -> dict[str, Any]:
    return {
        "id": broker.node_id,
        "address": str(broker.address),
        "rack": broker.rack,
        "fenced": broker.is_fenced,
        "leaders": broker.leads,
        "replicas": broker.replicas,
        "outOfSync": broker.out_of_sync,
        "maxLag": broker.max_lag,
        "size": broker.size,
        "error": broker.error,
        "logDirs": [
            {
                "path": one.path,
                "error": code_name(one.error_code) if one.error_code else None,
                "size": one.size,
                "totalBytes": one.total_bytes if one.total_bytes >= 0 else None,
                "usableBytes": one.usable_bytes if one.usable_bytes >= 0 else None,
            }
            for one in broker.directories
        ],
    }


def _partition_json(one: PartitionState) -> dict[str, Any]:
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "leader": one.leader,
        "leaderEpoch": one.leader_epoch,
        "replicas": list(one.replicas),
        "isr": list(one.isr),
        "minIsr": one.min_isr,
        "offline": one.is_offline,
        "underReplicated": one.is_under_replicated,
        "underMinIsr": one.is_under_min_isr,
        "logEndOffsets": {str(node): offset for node, offset in sorted(one.ends.items())},
        **({} if one.high_watermark is None else {"highWatermark": one.high_watermark}),
        "lag": {str(node): lag for node, lag in sorted(one.lags.items())},
        "adding": list(one.moving.adding) if one.moving else [],
        "removing": list(one.moving.removing) if one.moving else [],
    }
