"""The storage of members and their partitions in messages, described as data.

A `RecordField` maps one field of a member to one field of a message. A `PartitionLists` describes a list of structs
that group partitions by topic id or by subtopology.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from tailrace.model.java.java_order import text_order

K = TypeVar("K", bytes, str)  # a topic id, or the name of a subtopology


class RecordField(NamedTuple):
    name: str  # in the member
    stored_name: str  # in the message
    write: Callable[[Any], Any] | None = None  # None: the value is the same
    read: Callable[[Any], Any] | None = None


def same_fields(*names: str) -> list[RecordField]:
    """Return fields that have the same name and value in the member and in the message."""
    return [RecordField(name, name) for name in names]


def write_fields(fields: Sequence[RecordField], member: Any) -> dict[str, Any]:
    written = {}
    for name, stored_name, write, _ in fields:
        value = getattr(member, name)
        written[stored_name] = value if write is None else write(value)
    return written


def read_fields(fields: Sequence[RecordField], message: Any) -> dict[str, Any]:
    found = {}
    for name, stored_name, _, read in fields:
        value = getattr(message, stored_name)
        found[name] = value if read is None else read(value)
    return found


def java_sorted(texts: Iterable[str]) -> list[str]:
    return sorted(texts, key=text_order)


@dataclass(frozen=True, slots=True)
class PartitionLists(Generic[K]):
    struct: Callable[..., Any]  # has `partitions`, and in current assignments `assignment_epochs`
    key_field: str  # topic_id or subtopology_id
    is_sorted: bool = False  # Kafka lists subtopologies by name, topics in the order of its map

    def write(self, partitions: Mapping[K, Collection[int]]) -> list[Any]:
        return [
            self.struct(**{self.key_field: key, "partitions": sorted(partitions[key])})
            for key in self._keys(partitions)
        ]

    def write_epochs(self, epochs: Mapping[K, Mapping[int, int]]) -> list[Any]:
        """Write partitions with the epochs in which they were assigned."""
        structs = self.write(epochs)
        for struct in structs:
            since = epochs[getattr(struct, self.key_field)]
            struct.assignment_epochs = [since[partition] for partition in struct.partitions]
        return structs

    def _keys(self, partitions: Mapping[K, Any]) -> Iterable[K]:
        return sorted(partitions) if self.is_sorted else partitions

    def read(self, structs: Iterable[Any]) -> dict[K, frozenset[int]]:
        return {getattr(struct, self.key_field): frozenset(struct.partitions) for struct in structs}

    def read_epochs(self, structs: Iterable[Any], default_epoch: int) -> dict[K, Mapping[int, int]]:
        """Read partitions with their epochs. Kafka before 4.2 wrote no epochs: then all have the default epoch."""
        found: dict[K, Mapping[int, int]] = {}
        for struct in structs:
            epochs = struct.assignment_epochs
            if epochs is None or len(epochs) != len(struct.partitions):
                epochs = [default_epoch] * len(struct.partitions)
            found[getattr(struct, self.key_field)] = dict(zip(struct.partitions, epochs, strict=True))
        return found
