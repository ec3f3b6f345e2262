"""Topic configs for a job: those of the directory's metadata, overridden by -o."""

from __future__ import annotations

import argparse

from tailrace.cli.errors import CommandError
from tailrace.cli.jobs.topic_configs_on_disk import topic_configs
from tailrace.log.directories.data_directory import read_data_directory
from tailrace.log.disk.files import DiskFiles
from tailrace.log.inspect.findings import InspectionFailed


def settings_of(options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Return configs by topic. An override of -o applies to the topics of --topic, or to all topics."""
    settings = topic_configs(options.directory)
    overrides = dict(_setting(text) for text in options.override)
    if overrides:
        for topic in options.topic or _topics(options.directory):
            settings[topic] = {**settings.get(topic, {}), **overrides}
    return settings


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise CommandError(f"{text!r} is not a setting: write KEY=VALUE")
    return key, value


def _topics(paths: list[str]) -> set[str]:
    found = set()
    for path in paths:
        try:
            found |= {folder.partition.topic for folder in read_data_directory(DiskFiles(), path.rstrip("/")).folders}
        except (OSError, InspectionFailed):
            continue  # the job itself reports this error
    return found
