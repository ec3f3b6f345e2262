"""Placement of the replicas of new partitions: striped over racks and brokers, as Kafka's controller does it.

Racks take turns, and within a rack its brokers. So leaders and replicas spread evenly, and no rack has two replicas of
a partition before every rack has one. Each partition starts one rack further, and in each rack one broker further. When
every broker has been first once, the order is shuffled, so that the same brokers do not always follow each other. A
leader is always on an unfenced broker. Other replicas may go to fenced brokers when the unfenced ones are used up.

Randomness enters as `next_int(n)`, which returns a number from 0 to n - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias, TypeVar

from tailrace.metadata.image.image import MetadataImage
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId

T = TypeVar("T")
NextInt: TypeAlias = Callable[[int], int]


class UsableBroker(NamedTuple):
    id: BrokerId
    rack: str | None = None
    fenced: bool = False


def usable_brokers(image: MetadataImage) -> list[UsableBroker]:
    """Return the brokers that may get new replicas: not in shutdown, and with a directory that is not cordoned."""
    return [
        UsableBroker(broker.id, broker.rack, broker.fenced)
        for broker in image.brokers.values()
        if not broker.in_controlled_shutdown and broker.takes_new_replicas
    ]


def place_replicas(
    brokers: Iterable[UsableBroker], partitions: int, replication_factor: int, next_int: NextInt
) -> Iterator[list[BrokerId]]:
    """Return the replicas of each partition, preferred leader first. Raise INVALID_REPLICATION_FACTOR for too few
    brokers."""
    racks = _Racks(brokers, next_int)
    if replication_factor <= 0:
        raise _impossible(f"the replication factor must be at least 1, not {replication_factor}")
    if racks.unfenced == 0:
        raise _impossible(
            "no broker can take a leader: all are fenced, shutting down or have only cordoned log directories"
        )
    if replication_factor > racks.total:
        raise _impossible(
            f"the replication factor {replication_factor} exceeds the number of usable brokers, {racks.total}"
        )
    return (racks.place(replication_factor) for _ in range(partitions))


def _impossible(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)


class _Brokers:
    """The brokers of one rack, which take turns: each once per round, and each round starts one broker further."""

    def __init__(self) -> None:
        self.ids: list[BrokerId] = []
        self._taken = 0
        self._offset = 0
        self._round = 0

    def begin(self, next_int: NextInt) -> None:
        if self.ids:
            self.ids.sort()
            self._offset = next_int(len(self.ids))

    def next(self, number: int) -> BrokerId | None:
        """Return the next broker in the round of that number, or None at the end of the round."""
        if not self.ids:
            return None
        if self._round != number:
            self._round = number
            self._taken = 0
            self._offset = (self._offset + 1) % len(self.ids)
        if self._taken >= len(self.ids):
            return None
        found = self.ids[(self._taken + self._offset) % len(self.ids)]
        self._taken += 1
        return found


class _Rack:
    def __init__(self) -> None:
        self.fenced = _Brokers()
        self.unfenced = _Brokers()

    def next(self, number: int) -> BrokerId | None:
        found = self.unfenced.next(number)
        return self.fenced.next(number) if found is None else found


class _Racks:
    def __init__(self, brokers: Iterable[UsableBroker], next_int: NextInt) -> None:
        self._next_int = next_int
        self._racks: dict[str | None, _Rack] = {}
        self.total = 0
        self.unfenced = 0
        for broker in brokers:
            rack = self._racks.setdefault(broker.rack, _Rack())
            (rack.fenced if broker.fenced else rack.unfenced).ids.append(broker.id)
            self.total += 1
            self.unfenced += not broker.fenced
        for rack in self._racks.values():
            rack.fenced.begin(next_int)
            rack.unfenced.begin(next_int)
        self._names = sorted(self._racks, key=lambda name: (name is not None, name or ""))
        self._offset = next_int(len(self._names)) if self._names else 0
        self._round = 0

    def place(self, replication_factor: int) -> list[BrokerId]:
        if self._round == self.unfenced and self.unfenced > 1:
            self._shuffle()
            self._round = 0
        if self._offset == len(self._names):
            self._offset = 0
        first_rack, leader = self._leader()
        replicas = [leader]
        # The others come from the racks in turn. The leader's rack is skipped in the first turn, because the leader was
        # its replica.
        turn, skip = self._offset, first_rack
        while len(replicas) < replication_factor:
            found = None
            if turn == skip:
                skip = -1
            else:
                found = self._racks[self._names[turn]].next(self._round)
            turn = (turn + 1) % len(self._names)
            if found is not None:
                replicas.append(found)
        self._round += 1
        self._offset += 1
        return replicas

    def _leader(self) -> tuple[int, BrokerId]:
        turn = self._offset
        while True:
            found = self._racks[self._names[turn]].unfenced.next(self._round)
            if found is not None:
                return turn, found
            turn = (turn + 1) % len(self._names)

    def _shuffle(self) -> None:
        shuffle(self._names, self._next_int)
        for rack in self._racks.values():
            shuffle(rack.fenced.ids, self._next_int)
            shuffle(rack.unfenced.ids, self._next_int)


def shuffle(items: list[T], next_int: NextInt) -> None:
    for size in range(len(items), 1, -1):
        other = next_int(size)
        items[size - 1], items[other] = items[other], items[size - 1]
