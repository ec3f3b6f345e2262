"""`tailrace shards rebalance`: spread the partitions of a node evenly over its shards."""

from __future__ import annotations

import argparse

from tailrace.cli.cluster.reassign import apply_plan
from tailrace.cli.connection.connecting import connected
from tailrace.cli.errors import CommandError
from tailrace.client.cluster.cluster_state import has_shards
from tailrace.client.cluster.even_assignment import plan_even


def run(options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        if not has_shards(cluster):
            raise CommandError(
                "this cluster is not one node with shards (`tailrace serve --shards N`): use `tailrace reassign`"
            )
        topics = [cluster.topic(name) for name in dict.fromkeys(options.topic)] or cluster.topics()
        plan = plan_even(topics, sorted(cluster.metadata.brokers))
        return apply_plan(options, cluster, plan)
