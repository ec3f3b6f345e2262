"""Connects to a cluster for a command, and turns the client's errors into errors of the command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from tailrace.cli.connection.client_properties import client_properties
from tailrace.cli.connection.profiles import bootstrap_of, chosen_profile
from tailrace.cli.errors import CommandError
from tailrace.cli.output import report_error
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.client.cluster.metadata import TopicMetadata
from tailrace.client.errors import ClientError, Refused, UnknownTopic, Unreachable, UnsupportedSecurity, code_name
from tailrace.client.network.bootstrap import parse_bootstrap
from tailrace.client.producing.producer import NotDelivered
from tailrace.client.settings import ClientSettings
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition

# Like an unknown topic, for which brokers have several codes: the exit status is 2.
_NOT_FOUND = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)


@contextmanager
def connected(options: argparse.Namespace) -> Iterator[ClusterClient]:
    """Yield a client of the cluster. A ClientError is raised as a CommandError."""
    profile = chosen_profile(options)
    properties = client_properties(profile, options.command_config, options.client_settings)
    bootstrap = bootstrap_of(options, profile)
    timeout_ms = int(options.timeout * 1000)
    settings = ClientSettings(
        client_id=properties.client_id,
        security=properties.security,
        connect_timeout_ms=min(10_000, timeout_ms),
        request_timeout_ms=min(30_000, timeout_ms),
        total_timeout_ms=timeout_ms,
    )
    try:
        with ClusterClient(bootstrap, settings) as cluster:
            yield cluster
    except ClientError as error:
        raise _command_error(error, bootstrap) from error


def check_connection(options: argparse.Namespace) -> None:
    """Raise CommandError if the options of the connection are wrong, without connecting."""
    profile = chosen_profile(options)
    client_properties(profile, options.command_config, options.client_settings)
    bootstrap = bootstrap_of(options, profile)
    try:
        parse_bootstrap(bootstrap)
    except ClientError as error:
        raise _command_error(error, bootstrap) from error


def _command_error(error: ClientError, bootstrap: str) -> CommandError:
    text = str(error)
    if isinstance(error, Refused) and error.code in _NOT_FOUND:
        return CommandError(f"there is no {error.subject} at {bootstrap}", code=code_name(error.code))
    if isinstance(error, Unreachable) and error.is_first:
        text += " (is a broker running? set its address with --bootstrap, --profile or TAILRACE_BOOTSTRAP)"
    if isinstance(error, UnsupportedSecurity):
        text += " (give the security settings with --command-config FILE or -X KEY=VALUE)"
    if isinstance(error, UnknownTopic):
        text += f" at {bootstrap}"
    return CommandError(
        text,
        status=1 if isinstance(error, Refused | NotDelivered) else 2,
        code=code_name(error.code) if isinstance(error, Refused) else None,
    )


def bootstrap_text(cluster: ClusterClient) -> str:
    """Return the addresses that the client connects to first."""
    return ",".join(map(str, cluster.bootstrap))


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
            status = 1
            report_error(str(error), status, code=code_name(error.code) if isinstance(error, Refused) else None)
    return status


def chosen_topic(options: argparse.Namespace) -> str:
    """Return the topic that is given as TOPIC or with -t."""
    return str(options.topic if options.topic_option is None else options.topic_option)


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
