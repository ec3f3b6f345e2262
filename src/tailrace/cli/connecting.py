"""Connects to a cluster for a command, and turns the client's errors into errors of the command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tailrace.cli.errors import CommandError
from tailrace.cli.output import warn
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.metadata import TopicMetadata
from tailrace.client.errors import ClientError, Refused, UnknownTopic, Unreachable, UnsupportedSecurity
from tailrace.client.producing.producer import NotDelivered
from tailrace.client.security.security import PLAIN_TEXT, SETTINGS, Security, security_of
from tailrace.client.settings import ClientSettings
from tailrace.model.ids import TopicPartition


@contextmanager
def connected(options: argparse.Namespace) -> Iterator[ClusterClient]:
    """Yield a client of the cluster at --bootstrap. A ClientError is raised as a CommandError."""
    timeout_ms = int(options.timeout * 1000)
    settings = ClientSettings(
        security=_security(options.command_config),
        connect_timeout_ms=min(10_000, timeout_ms),
        request_timeout_ms=min(30_000, timeout_ms),
        total_timeout_ms=timeout_ms,
    )
    try:
        with ClusterClient(options.bootstrap, settings) as cluster:
            yield cluster
    except ClientError as error:
        raise _command_error(error, options) from error


def _security(path: str | None) -> Security:
    """Return the security settings of --command-config. Its other settings are ignored: they are for other tools."""
    if path is None:
        return PLAIN_TEXT
    from tailrace.cli.serving.serve import read_properties

    properties = read_properties(path)
    try:
        return security_of({name: text for name, text in properties.items() if name in SETTINGS})
    except ClientError as error:
        raise CommandError(f"--command-config {path}: {error}") from error


def _command_error(error: ClientError, options: argparse.Namespace) -> CommandError:
    text = str(error)
    if isinstance(error, Unreachable) and error.is_first:
        text += " (is a broker running? set its address with --bootstrap)"
    if isinstance(error, UnsupportedSecurity):
        text += " (give the security settings with --command-config FILE)"
    if isinstance(error, UnknownTopic):
        text += f" at {options.bootstrap}"
    return CommandError(text, status=1 if isinstance(error, Refused | NotDelivered) else 2)


def for_each(names: Iterable[str], act: Callable[[str], None]) -> int:
    """Call `act` with each name, and return the exit status.

    With several names, a refused one is reported on standard error and the others are still processed.
    """
    wanted = list(dict.fromkeys(names))
    if len(wanted) == 1:
        act(wanted[0])
        return 0
    status = 0
    for name in wanted:
        try:
            act(name)
        except (Refused, UnknownTopic) as error:
            warn(str(error))
            status = 1
    return status


def chosen_partitions(topic: TopicMetadata, options: argparse.Namespace) -> list[TopicPartition]:
    """Return the partitions given with --partition, or all."""
    if not options.partition:
        return topic.topic_partitions
    return [topic.partition(number).partition for number in sorted(set(options.partition))]


def split_setting(text: str) -> tuple[str, str]:
    """Split KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise CommandError(f"{text!r} is not a setting: write KEY=VALUE")
    return key.strip(), value
