"""LeaderRole: the progress of followers, and what depends on it: high watermark, low watermark, ISR.

- High watermark: the smallest log end of the replicas in sync. A replica that is caught up and may join counts too.
  Otherwise the leader could run ahead alone, and the follower would never reach the high watermark and join.
  It does not move while fewer than min.insync.replicas (or all replicas, if that is less) are in sync.
- A follower joins the ISR when its log end reaches the high watermark and the first offset of this leader epoch. Before
  that it may lack records that were committed under an earlier leader. Its broker must be alive, not shutting down, and
  not restarted since the fetch: a restarted broker may have lost records.
- A follower is dropped if it was not caught up for replica.lag.time.max.ms.
- Low watermark: the smallest log start of the leader and the live replicas; DeleteRecords waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tailrace.log.partition_log import PartitionLog
from tailrace.log.segments.position import LogPosition
from tailrace.metadata.image.image import EMPTY_IMAGE, MetadataImage
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.model.ids import BrokerId, Offset, TopicPartition
from tailrace.replication.follower_progress import FollowerProgress
from tailrace.replication.isr_state import UNKNOWN_BROKER_EPOCH, IsrProposal, IsrState


@dataclass(slots=True)
class IsrChanges:
    """Counters of ISR changes that this broker proposed."""

    shrinks: int = 0
    expands: int = 0
    failed: int = 0


@dataclass(slots=True, kw_only=True)
class ReplicaSettings:
    """Settings and functions that all replicas of a broker share."""

    broker_id: BrokerId
    image: Callable[[], MetadataImage] = lambda: EMPTY_IMAGE  # the current metadata
    broker_epoch: Callable[[], int] = lambda: UNKNOWN_BROKER_EPOCH
    replica_lag_time_max_ms: int = 30_000
    isr_changes: IsrChanges = field(default_factory=IsrChanges)
    on_proposal: Callable[[TopicPartition, IsrProposal], None] = lambda key, proposal: None  # for the controller

    def alive_epoch(self, broker_id: BrokerId) -> int | None:
        """Return the epoch of a broker that is registered and not fenced, or None."""
        broker = self.image().brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker.epoch

    def is_active(self, broker_id: BrokerId) -> bool:
        return self.image().is_active(broker_id)


class LeaderRole:
    __slots__ = ("_log", "_settings", "epoch_start_offset", "followers", "isr", "leader_epoch", "partition_epoch")

    def __init__(self, log: PartitionLog, settings: ReplicaSettings, state: PartitionRegistration) -> None:
        self._log = log
        self._settings = settings
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.epoch_start_offset = log.log_end_offset
        self.followers: dict[BrokerId, FollowerProgress] = {}
        self.isr = IsrState(state.isr)

    # Start of an epoch

    def assign(self, replicas: Iterable[BrokerId], known: dict[BrokerId, FollowerProgress]) -> None:
        """Set the followers; keep what is known of them."""
        others = [broker_id for broker_id in replicas if broker_id != self._settings.broker_id]
        self.followers = {broker_id: known.get(broker_id) or FollowerProgress(broker_id) for broker_id in others}

    def start_followers(self, now_ms: int, *, is_new_leader: bool) -> None:
        """Start all followers in a new leader epoch."""
        for follower in self.followers.values():
            in_sync = follower.broker_id in self.isr.committed
            if is_new_leader:
                follower.start_under(now_ms, in_sync=in_sync)
            else:
                follower.continue_under(self.epoch_start_offset, now_ms, in_sync=in_sync)

    def replace_log(self, log: PartitionLog) -> None:
        """Use another log, a copy with the same records."""
        self._log = log

    # High and low watermark

    @property
    def min_isr(self) -> int:
        """min.insync.replicas, or the number of replicas if that is smaller."""
        needed, replicas = self._log.config.min_insync_replicas, len(self.followers) + 1
        return needed if needed < replicas else replicas

    @property
    def is_under_min_isr(self) -> bool:
        if not self.followers:  # a single replica is enough for any min.insync.replicas
            return not self.isr.committed
        return len(self.isr.committed) < self.min_isr

    def advance_high_watermark(self, now_ms: int) -> bool:
        """Move the high watermark as far as possible. Return True if it moved."""
        if not self.followers:
            log = self._log
            return bool(self.isr.committed) and log.advance_high_watermark(log.marks.log_end.offset)
        if self.is_under_min_isr:
            return False
        leader_end = offset = self._log.log_end_offset
        max_lag_ms = self._settings.replica_lag_time_max_ms
        for broker_id, follower in self.followers.items():
            if follower.log_end.offset < offset and (
                broker_id in self.isr.maximal
                or (follower.is_caught_up(leader_end, now_ms, max_lag_ms) and self._may_join(follower))
            ):
                offset = follower.log_end.offset
        return self._log.advance_high_watermark(offset)

    def low_watermark(self) -> Offset:
        low = self._log.log_start_offset
        for follower in self.followers.values():
            if follower.log_start_offset < low and self._settings.alive_epoch(follower.broker_id) is not None:
                low = follower.log_start_offset
        return low

    # Followers

    def note_fetch(
        self,
        follower: FollowerProgress,
        log_end: LogPosition,
        log_start_offset: Offset,
        leader_end: Offset,
        broker_epoch: int,
        now_ms: int,
    ) -> bool:
        """Note a follower's fetch. Return True if the high or the low watermark may have moved."""
        alive_epoch = self._settings.alive_epoch(follower.broker_id)
        if broker_epoch != UNKNOWN_BROKER_EPOCH and alive_epoch is not None and alive_epoch > broker_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {follower.broker_id} fetched with broker epoch {broker_epoch}, but was restarted since then",
            )
        before, start_before = follower.log_end.offset, follower.log_start_offset
        follower.note_fetch(log_end, log_start_offset, leader_end, broker_epoch, now_ms)
        self._propose_to_join(follower)
        moved = log_end.offset != before and self.advance_high_watermark(now_ms)
        return moved or log_start_offset != start_before

    def _may_join(self, follower: FollowerProgress) -> bool:
        alive_epoch = self._settings.alive_epoch(follower.broker_id)
        return (
            alive_epoch is not None
            and follower.broker_epoch in (UNKNOWN_BROKER_EPOCH, alive_epoch)
            and self._settings.is_active(follower.broker_id)
        )

    def _propose_to_join(self, follower: FollowerProgress) -> None:
        if (
            self.isr.pending is None
            and follower.broker_id not in self.isr.committed
            and follower.log_end.offset >= self._log.high_watermark
            and follower.log_end.offset >= self.epoch_start_offset
            and self._may_join(follower)
        ):
            self._propose(joining=frozenset({follower.broker_id}))

    def shrink_isr(self, now_ms: int) -> bool:
        """Propose an ISR without lagging replicas. Return True if there is a proposal."""
        lagging = self.lagging(now_ms)
        if lagging:
            self._propose(leaving=lagging)
        return bool(lagging)

    def lagging(self, now_ms: int) -> frozenset[BrokerId]:
        """Return in-sync replicas that lag; none while a change is pending."""
        if self.isr.pending is not None:
            return frozenset()
        end, max_lag_ms = self._log.log_end_offset, self._settings.replica_lag_time_max_ms
        return frozenset(
            broker_id
            for broker_id in self.isr.committed - {self._settings.broker_id}
            if (follower := self.followers.get(broker_id)) is None or not follower.is_caught_up(end, now_ms, max_lag_ms)
        )

    def _propose(self, joining: frozenset[BrokerId] = frozenset(), leaving: frozenset[BrokerId] = frozenset()) -> None:
        members = sorted((self.isr.committed | joining) - leaving)
        proposal = IsrProposal(
            self._settings.broker_id,
            self.leader_epoch,
            self.partition_epoch,
            tuple((broker_id, self._broker_epoch(broker_id)) for broker_id in members),
            joining,
            leaving,
        )
        self.isr.propose(proposal)
        self._settings.on_proposal(self._log.partition, proposal)

    def _broker_epoch(self, broker_id: BrokerId) -> int:
        if broker_id == self._settings.broker_id:
            return self._settings.broker_epoch()
        follower = self.followers.get(broker_id)
        # An unknown epoch is safe for a member without a fetch: if its broker changes, so does the partition epoch.
        if follower is None or follower.broker_epoch is None:
            return UNKNOWN_BROKER_EPOCH
        return follower.broker_epoch

    # The controller's response

    def isr_accepted(
        self, proposal: IsrProposal, isr: Iterable[BrokerId], leader_epoch: int, partition_epoch: int, now_ms: int
    ) -> bool:
        """Apply an accepted proposal. Return True if the high watermark moved."""
        if self.isr.pending is not proposal:
            return False  # decided by newer metadata meanwhile
        if leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return False
        self.isr.commit(isr)
        self.partition_epoch = partition_epoch
        self._settings.isr_changes.expands += bool(proposal.joining)
        self._settings.isr_changes.shrinks += bool(proposal.leaving)
        return self.advance_high_watermark(now_ms)

    def isr_refused(self, proposal: IsrProposal, error: ErrorCode) -> bool:
        """Handle a refused proposal. Return True if it must be sent again."""
        if self.isr.pending is not proposal:
            return False
        self._settings.isr_changes.failed += 1
        if error in (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA):
            # The controller has our partition epoch and changed nothing, and no other controller can have.
            self.isr.withdraw()
            return False
        # After these errors our state is outdated, and newer metadata will arrive. Any other error is retried.
        return error not in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.INVALID_UPDATE_VERSION,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.NEW_LEADER_ELECTED,
        )
