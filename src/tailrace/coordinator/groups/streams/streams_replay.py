"""Replay of the records of streams groups."""

from __future__ import annotations

from typing import Any, Final

from tailrace.coordinator.groups.epoch.epoch_replay import EpochReplay
from tailrace.coordinator.groups.streams.streams_group import StreamsGroup
from tailrace.coordinator.groups.streams.streams_records import STREAMS_RECORDS
from tailrace.coordinator.groups.streams.streams_topology import StreamsTopology
from tailrace.protocol.messages import StreamsGroupTopologyKey


def _replay_topology(group: StreamsGroup, key: Any, value: Any) -> None:
    group.put_topology(None if value is None else StreamsTopology(value))


STREAMS_REPLAY: Final = EpochReplay(StreamsGroup, STREAMS_RECORDS, (StreamsGroupTopologyKey,), _replay_topology)
