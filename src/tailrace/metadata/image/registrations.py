"""BrokerRegistration and ControllerRegistration: the nodes of the cluster, as registered in the metadata log.

A broker's epoch is the offset of the record that registered it. Each start is a new registration with a new
incarnation id. A fenced broker leads nothing and is in no ISR. Ids of directories and incarnations are 16 raw bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tailrace.metadata.image.features import RecordVersions, VersionRange
from tailrace.model.ids import BrokerId
from tailrace.protocol import messages

# Directory ids with a special meaning.
MIGRATING_DIRECTORY = bytes(16)
UNASSIGNED_DIRECTORY = bytes(15) + b"\x01"
LOST_DIRECTORY = bytes(15) + b"\x02"

_DASH = 62  # the number of `-` in URL-safe base64


class InconsistentMetadata(Exception):
    """A metadata record contradicts those before it."""


class Endpoint(NamedTuple):
    """An address of a node; the security protocol is 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT or 3 SASL_SSL."""

    listener: str
    host: str
    port: int
    security_protocol: int = 0


class BrokerChange(NamedTuple):
    """A change of a registration; None leaves a field unchanged."""

    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    directories: tuple[bytes, ...] | None = None
    cordoned_directories: tuple[bytes, ...] | None = None

    @classmethod
    def from_record(cls, record: messages.BrokerRegistrationChangeRecord) -> BrokerChange:
        if record.fenced not in (-1, 0, 1) or record.in_controlled_shutdown not in (0, 1):
            raise InconsistentMetadata(f"unknown kind of change in {record}")
        return cls(
            fenced={-1: False, 0: None, 1: True}[record.fenced],
            in_controlled_shutdown=True if record.in_controlled_shutdown == 1 else None,
            directories=tuple(record.log_dirs) if record.log_dirs else None,
            cordoned_directories=None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    id: BrokerId
    epoch: int
    incarnation_id: bytes
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    features: Mapping[str, VersionRange] = field(default_factory=dict)
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[bytes, ...] = ()  # those online, in order
    cordoned_directories: tuple[bytes, ...] | None = None

    @classmethod
    def from_record(cls, record: messages.RegisterBrokerRecord) -> BrokerRegistration:
        return cls(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=endpoints_by_name(
                Endpoint(one.name, one.host, one.port, one.security_protocol) for one in record.end_points
            ),
            features={
                one.name: VersionRange(one.min_supported_version, one.max_supported_version) for one in record.features
            },
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=_sorted_ids(record.log_dirs),
            cordoned_directories=None if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs),
        )

    def to_record(self, versions: RecordVersions) -> messages.RegisterBrokerRecord:
        """Return the record; fields that its version does not have are left out."""
        return messages.RegisterBrokerRecord(
            broker_id=self.id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                messages.RegisterBrokerRecord.BrokerEndpoint(
                    name=one.listener, host=one.host, port=one.port, security_protocol=one.security_protocol
                )
                for one in self.endpoints.values()
            ],
            features=[
                messages.RegisterBrokerRecord.BrokerFeature(
                    name=name, min_supported_version=levels.low, max_supported_version=levels.high
                )
                for name, levels in self.features.items()
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.directories) if versions.has_directories else [],
            cordoned_log_dirs=list(self.cordoned_directories)
            if self.cordoned_directories is not None and versions.has_cordoned_directories
            else None,
        )

    @property
    def is_active(self) -> bool:
        """True if the broker may lead partitions and be in their ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def default_directory(self) -> bytes:
        """The directory of a new replica, as far as the controller knows it."""
        if not self.directories:
            return MIGRATING_DIRECTORY
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED_DIRECTORY

    @property
    def takes_new_replicas(self) -> bool:
        """True unless all directories are cordoned."""
        if not self.directories or self.cordoned_directories is None:
            return True
        return not set(self.directories) <= set(self.cordoned_directories)

    def is_online(self, directory: bytes) -> bool:
        """Return True if replicas in that directory can be used."""
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        if directory == LOST_DIRECTORY:
            return False
        # A broker that never reported directories counts as having all of them online.
        return not self.directories or directory in self.directories

    def changed(self, change: BrokerChange) -> BrokerRegistration:
        return replace(
            self,
            fenced=self.fenced if change.fenced is None else change.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown
            if change.in_controlled_shutdown is None
            else change.in_controlled_shutdown,
            directories=self.directories if change.directories is None else _sorted_ids(change.directories),
            cordoned_directories=self.cordoned_directories
            if change.cordoned_directories is None
            else change.cordoned_directories,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRegistration:
    id: int
    incarnation_id: bytes
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    features: Mapping[str, VersionRange] = field(default_factory=dict)

    @classmethod
    def from_record(cls, record: messages.RegisterControllerRecord) -> ControllerRegistration:
        return cls(
            id=record.controller_id,
            incarnation_id=record.incarnation_id,
            endpoints=endpoints_by_name(
                Endpoint(one.name, one.host, one.port, one.security_protocol) for one in record.end_points
            ),
            features={
                one.name: VersionRange(one.min_supported_version, one.max_supported_version) for one in record.features
            },
        )

    def to_record(self) -> messages.RegisterControllerRecord:
        return messages.RegisterControllerRecord(
            controller_id=self.id,
            incarnation_id=self.incarnation_id,
            end_points=[
                messages.RegisterControllerRecord.ControllerEndpoint(
                    name=one.listener, host=one.host, port=one.port, security_protocol=one.security_protocol
                )
                for one in self.endpoints.values()
            ],
            features=[
                messages.RegisterControllerRecord.ControllerFeature(
                    name=name, min_supported_version=levels.low, max_supported_version=levels.high
                )
                for name, levels in self.features.items()
            ],
        )


def endpoints_by_name(endpoints: Iterable[Endpoint]) -> dict[str, Endpoint]:
    found = {endpoint.listener: endpoint for endpoint in endpoints}
    if "" in found:
        raise InconsistentMetadata("an endpoint in a registration record has no listener name")
    return found


def is_reserved(directory: bytes) -> bool:
    """Return True for the first hundred ids, and, as in Kafka, those whose second half is negative."""
    return directory[:8] == bytes(8) and _signed(directory[8:]) < 100


def fresh_id(new_id: Callable[[], bytes]) -> bytes:
    """Return an id that is not reserved, and whose text does not start with a dash, like an option."""
    while True:
        found = new_id()
        if not is_reserved(found) and found[0] >> 2 != _DASH:
            return found


def _sorted_ids(ids: Iterable[bytes]) -> tuple[bytes, ...]:
    """Sort in Kafka's order of UUIDs: as two signed 64-bit numbers."""
    return tuple(sorted(ids, key=lambda one: (_signed(one[:8]), _signed(one[8:]))))


def _signed(half: bytes) -> int:
    return int.from_bytes(half, "big", signed=True)
