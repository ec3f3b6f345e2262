"""Members of a classic group without a network: they join, assign, commit, stall, crash and start again.

Everything happens in virtual time, in an order that a seed decides. The coordinator is the real one, on a log in memory
whose replicas may lag. The coordinator may lose leadership; then uncommitted records are lost and the rest is loaded
again.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from tailrace.coordinator.groups.classic.classic_group import STABLE, ClassicGroup
from tailrace.coordinator.groups.classic.classic_membership import LeavingMember, SyncRequest
from tailrace.coordinator.groups.classic.join_request import JoinRequest
from tailrace.coordinator.groups.group import Committer, TopicCommit
from tailrace.coordinator.groups.group_coordinator import GroupCoordinator
from tailrace.coordinator.groups.group_settings import GroupSettings
from tailrace.coordinator.runtime import CoordinatorRuntime
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import TopicPartition
from tailrace.records.batch import RecordBatch
from tailrace.waiting.purgatory import Purgatory

PARTITIONS = 6
SESSION_MS = 3_000
REBALANCE_MS = 5_000
HEARTBEAT_MS = 1_000
GROUP = "g"
KEY = TopicPartition("__consumer_offsets", 0)
_SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


class LaggingLog:
    """A partition whose high watermark moves only when the test moves it."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, bytes]] = []
        self.end = 0
        self.high_watermark = 0
        self.is_led = True
        self.is_refusing = False

    def bounds(self, key: TopicPartition) -> tuple[int, int]:
        return 0, self.end

    def read(self, key: TopicPartition, offset: int, max_bytes: int) -> bytes:
        for base, data in self.batches:
            if RecordBatch(memoryview(bytearray(data))).last_offset >= offset:
                del base
                return data
        return b""

    def batch_bytes_max(self, key: TopicPartition) -> int:
        return 1 << 20

    def append(self, key: TopicPartition, batch: bytes, now_ms: int, transaction_version: int = 0) -> int:
        if self.is_refusing:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        data = bytearray(batch)
        opened = RecordBatch(memoryview(data))
        opened.set_offset_and_epoch(self.end, 0)
        self.batches.append((self.end, bytes(data)))
        self.end += opened.record_count
        return self.end

    def commit_error(self, key: TopicPartition, end: int) -> ErrorCode | None:
        return ErrorCode.NONE if self.high_watermark >= end else None

    def lose_tail(self) -> None:
        self.batches = [(base, data) for base, data in self.batches if base < self.high_watermark]
        self.end = self.high_watermark


class World:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = 1_000_000
        self.log = LaggingLog()
        self.purgatory = Purgatory()
        self._uuids = count(1)
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        settings = GroupSettings(
            session_timeout_ms_min=100,
            initial_rebalance_delay_ms=self.random.choice([0, 500, 3_000]),
            new_member_join_timeout_ms=20_000,
        )
        self.runtime: CoordinatorRuntime[GroupCoordinator] = CoordinatorRuntime(
            KEY.topic,
            self.log,
            self.purgatory,
            lambda _, timers: GroupCoordinator(timers, settings, lambda: f"{next(self._uuids)}"),
            write_timeout_ms=5_000,
            replay_of=lambda shard, producer_id: shard.offsets.replay(producer_id),
        )
        self.runtime.lead(0, self.now_ms)
        self.members: list[SimulatedMember] = []
        self.is_calm = False  # if True, no response is lost
        self.accepted: dict[int, int] = {}  # partition → last offset whose commit was acknowledged to the owner
        self.replication_lag_ms = self.random.choice([0, 0, 5, 200])

    # Time

    def at(self, delay_ms: int, what: Callable[[], None]) -> None:
        heappush(self._events, (self.now_ms + delay_ms, next(self._order), what))

    def run(self, for_ms: int) -> None:
        until_ms = self.now_ms + for_ms
        while True:
            timer_ms = self.runtime.next_deadline_ms()
            waiting_ms = self.purgatory.next_deadline_ms()
            due = [ms for ms in (timer_ms, waiting_ms, self._events[0][0] if self._events else None) if ms is not None]
            next_ms = max(min(due, default=until_ms + 1), self.now_ms)
            if next_ms > until_ms:
                self.now_ms = until_ms
                # count failures, because the runtime survives assertions inside requests and responses
                failures = self.runtime.failures
                assert (failures.operations, failures.reloads, failures.skipped) == (0, 0, 0), "the log has the reason"
                return
            self.now_ms = next_ms
            self.purgatory.expire(next_ms)
            self.runtime.tick(next_ms)
            while self._events and self._events[0][0] <= next_ms:
                heappop(self._events)[2]()
                self.replicate()

    def replicate(self) -> None:
        """Replicate the appended records to the other replicas, at once or a little later."""
        end = self.log.end
        if end > self.log.high_watermark:
            if self.replication_lag_ms == 0:
                self._advance(end)
            else:
                self.at(
                    self.random.randrange(1, self.replication_lag_ms), lambda: self._advance(min(end, self.log.end))
                )

    def _advance(self, end: int) -> None:
        if end > self.log.high_watermark:
            self.log.high_watermark = end
            self.purgatory.check(KEY, self.now_ms)

    # Changes of the coordinator

    def change_leader(self) -> None:
        """Elect another leader: uncommitted records are lost, acknowledged ones are not."""
        self.runtime.resign(0, self.now_ms)
        self.log.lose_tail()
        self.runtime.lead(0, self.now_ms)
        self.runtime.load_all(self.now_ms)
        self.check_offsets()

    def check_offsets(self) -> None:
        shard = self.runtime.shard(0)
        for partition, offset in self.accepted.items():
            found = shard.offsets.get(GROUP, "t", partition)
            assert found is not None
            assert found.offset >= offset, f"{offset} of {partition} was committed, {found.offset} is there"

    @property
    def group(self) -> ClassicGroup | None:
        found = self.runtime.shard(0).groups.get(GROUP)
        assert found is None or isinstance(found, ClassicGroup)
        return found

    def has_converged(self) -> bool:
        """Return True if every living process is a member and each partition has one owner."""
        group = self.group
        living = [member for member in self.members if member.is_alive]
        if group is None or group.state is not STABLE or len(group.members) != len(living):
            return False
        owned = sorted(partition for member in living for partition in member.owned)
        return owned == list(range(PARTITIONS)) and all(member.is_stable for member in living)


class SimulatedMember:
    def __init__(self, world: World, name: str, *, version: int, instance_id: str | None = None) -> None:
        self.world = world
        self.name = name
        self.version = version
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.owned: dict[int, int] = {}  # partition → position
        self.is_alive = True
        self.is_stable = False
        self.stalled_until_ms = 0
        self._request = 0  # only the response to the latest request counts
        world.at(world.random.randrange(500), self.join)

    def _do(self, what: Callable[[], None]) -> None:
        """Run an action now, or after a stall, or never after a crash."""
        if not self.is_alive:
            return
        if self.world.now_ms < self.stalled_until_ms:
            self.world.at(self.stalled_until_ms - self.world.now_ms, lambda: self._do(what))
        else:
            what()

    def _answer(self, take: Callable[[Any], None]) -> Callable[[Any, int], None]:
        self._request += 1
        number = self._request
        lost = not self.world.is_calm and self.world.random.random() < 0.02

        def answer(response: Any, now_ms: int) -> None:
            if lost:
                # As after a broken connection, the client sends the request again later.
                self.world.at(800, lambda: self._do(self.join) if number == self._request else None)
            else:
                delay_ms = self.world.random.randrange(3)
                self.world.at(delay_ms, lambda: self._do(lambda: take(response)) if number == self._request else None)

        return answer

    # Join, sync

    def join(self) -> None:
        self.is_stable = False
        answer = self._answer(self._joined)
        request = JoinRequest(
            GROUP, self.member_id, self.instance_id, self.name, "/h", SESSION_MS, REBALANCE_MS, "consumer",
            [("range", _SUBSCRIPTION)], "test", self.version,
        )  # fmt: skip
        self.world.runtime.write(
            0,
            lambda shard: shard.join(request, answer, self.world.now_ms),
            lambda _, __: None,
            lambda error, now_ms: answer(_Failure(error.code), now_ms),
            self.world.now_ms,
        )

    def _joined(self, response: Any) -> None:
        code = response.error_code
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id = ""
            self.owned = {}
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        if code:
            delay_ms = 0 if code == ErrorCode.MEMBER_ID_REQUIRED else 100
            self.world.at(delay_ms, lambda: self._do(self.join))
            return
        self.member_id = response.member_id
        self.generation = response.generation_id
        self.owned = {}
        work: dict[str, bytes] = {}
        if response.leader == self.member_id and not response.skip_assignment:
            ids = sorted(one.member_id for one in response.members)
            work = {one: bytes(range(place, PARTITIONS, len(ids))) for place, one in enumerate(ids)}
        answer = self._answer(self._synced)
        request = SyncRequest(GROUP, self.member_id, self.instance_id, self.generation, "consumer", "range", work)
        self.world.runtime.write(
            0,
            lambda shard: shard.sync(request, answer, self.world.now_ms),
            lambda _, __: None,
            lambda error, now_ms: answer(_Failure(error.code), now_ms),
            self.world.now_ms,
        )

    def _synced(self, response: Any) -> None:
        if response.error_code:
            if response.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                self.member_id = ""
            self.world.at(100, lambda: self._do(self.join))
            return
        partitions = list(response.assignment)
        answer = self._answer(lambda found: self._begin(partitions, found))
        self.world.runtime.read(
            0,
            lambda shard: shard.commits.fetch(GROUP, None, -1, [("t", partitions)], require_stable=True),
            answer,
            lambda error, now_ms: answer(_Failure(error.code), now_ms),
            self.world.now_ms,
        )

    def _begin(self, partitions: list[int], found: Any) -> None:
        if isinstance(found, _Failure):
            self.world.at(100, lambda: self._do(self.join))
            return
        ((_, offsets),) = found
        self.owned = {one.partition: max(one.offset, 0) for one in offsets}
        self.is_stable = True
        self._beat(self._request)

    # Heartbeats, commits

    def _beat(self, number: int) -> None:
        if number != self._request or not self.is_stable:
            return
        self.world.at(HEARTBEAT_MS, lambda: self._do(lambda: self._beat(number)))
        for partition in self.owned:
            self._commit(partition)

        def refuse(error: KafkaError, now_ms: int) -> None:
            received(error.code, now_ms)

        def received(code: ErrorCode, now_ms: int) -> None:
            if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                self.member_id = ""
            if code and number == self._request:
                self.join()

        self.world.runtime.read(
            0,
            lambda shard: shard.heartbeat(GROUP, self.member_id, self.instance_id, self.generation, self.world.now_ms),
            received,
            refuse,
            self.world.now_ms,
        )

    def _commit(self, partition: int) -> None:
        position = self.owned[partition] + self.world.random.randrange(1, 5)
        self.owned[partition] = position
        world = self.world
        who = (self.member_id, self.generation)

        def commit(shard: GroupCoordinator) -> Any:
            change = shard.commits.commit(
                GROUP,
                Committer(who[0], self.instance_id, who[1], version=9),
                [TopicCommit("t", bytes(16), [(partition, position, -1, b"", -1)])],
                world.now_ms,
            )
            group = world.group
            assert group is not None
            member = group.members[who[0]]
            assert group.generation == who[1], "a commit of another generation was accepted"
            assert partition in member.assignment, f"{self.name} does not own {partition}"
            return change

        def accepted(_: Any, __: int) -> None:
            before = world.accepted.get(partition, -1)
            assert position > before, f"{self.name} committed {position} of {partition} after {before}"
            world.accepted[partition] = position

        world.runtime.write(0, commit, accepted, lambda _, __: None, world.now_ms)

    # Stalls and crashes

    def stall(self, for_ms: int) -> None:
        self.stalled_until_ms = self.world.now_ms + for_ms

    def crash(self) -> None:
        self.is_alive = False
        self.owned = {}

    def leave(self) -> None:
        leaving = [LeavingMember(self.member_id, self.instance_id, "test")]
        self.is_alive = False
        self.owned = {}
        self.world.runtime.write(
            0,
            lambda shard: shard.leave(GROUP, leaving, self.world.now_ms),
            lambda _, __: None,
            lambda _, __: None,
            self.world.now_ms,
        )


class _Failure:
    def __init__(self, code: ErrorCode) -> None:
        self.error_code = code
