"""Set and unset configs of a cluster, through the batch client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.configs import ConfigChange, Operation, Resource, alter_configs


def set_configs(cluster: ClusterClient, resource: Resource, settings: Mapping[str, str]) -> None:
    alter_configs(cluster, resource, [ConfigChange(name, Operation.SET, value) for name, value in settings.items()])


def unset_configs(cluster: ClusterClient, resource: Resource, keys: Iterable[str]) -> None:
    alter_configs(cluster, resource, [ConfigChange(key, Operation.DELETE) for key in keys])
