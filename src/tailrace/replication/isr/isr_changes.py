"""IsrChanges: when a leader proposes a new ISR, and the controller's decision on that.

- A follower joins the ISR when its log end reaches the high watermark and the first offset of this leader epoch. Before
  that it may lack records that were committed under an earlier leader. Its broker must be alive, not shutting down, and
  not restarted since the fetch: a restarted broker may have lost records.
- The ISR shrinks by a follower that was not caught up for replica.lag.time.max.ms.
- One change is pending at a time. `isr_proposals.py` sends it to the controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tailrace.log.partition_log import PartitionLog
from tailrace.metadata.image.partition_registration import PartitionRegistration
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import BrokerId, Offset
from tailrace.replication.follower_progress import FollowerProgress
from tailrace.replication.isr.isr_state import UNKNOWN_BROKER_EPOCH, IsrProposal, IsrState
from tailrace.replication.replica_settings import ReplicaSettings


class IsrChanges:
    __slots__ = (
        "_epoch_start_offset",
        "_followers",
        "_leader_epoch",
        "_log",
        "_settings",
        "isr",
        "partition_epoch",
    )

    def __init__(
        self,
        log: PartitionLog,
        settings: ReplicaSettings,
        state: PartitionRegistration,
        epoch_start_offset: Offset,
        followers: Mapping[BrokerId, FollowerProgress],
    ) -> None:
        """`followers` is the leader's own mapping, which changes with the metadata."""
        self._log = log
        self._settings = settings
        self._leader_epoch = state.leader_epoch
        self._epoch_start_offset = epoch_start_offset
        self._followers = followers
        self.partition_epoch = state.partition_epoch
        self.isr = IsrState(state.isr)

    def replace_log(self, log: PartitionLog) -> None:
        """Use another log, a copy with the same records."""
        self._log = log

    # Proposals

    def may_join(self, follower: FollowerProgress) -> bool:
        alive_epoch = self._settings.alive_epoch(follower.broker_id)
        return (
            alive_epoch is not None
            and follower.broker_epoch in (UNKNOWN_BROKER_EPOCH, alive_epoch)
            and self._settings.is_active(follower.broker_id)
        )

    def propose_to_join(self, follower: FollowerProgress) -> None:
        if (
            self.isr.pending is None
            and follower.broker_id not in self.isr.committed
            and follower.log_end.offset >= self._log.high_watermark
            and follower.log_end.offset >= self._epoch_start_offset
            and self.may_join(follower)
        ):
            self._propose(joining=frozenset({follower.broker_id}))

    def shrink(self, now_ms: int) -> bool:
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
            if (follower := self._followers.get(broker_id)) is None
            or not follower.is_caught_up(end, now_ms, max_lag_ms)
        )

    def _propose(self, joining: frozenset[BrokerId] = frozenset(), leaving: frozenset[BrokerId] = frozenset()) -> None:
        members = sorted((self.isr.committed | joining) - leaving)
        proposal = IsrProposal(
            self._settings.broker_id,
            self._leader_epoch,
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
        follower = self._followers.get(broker_id)
        # An unknown epoch is safe for a member without a fetch: if its broker changes, so does the partition epoch.
        if follower is None or follower.broker_epoch is None:
            return UNKNOWN_BROKER_EPOCH
        return follower.broker_epoch

    # Decisions

    def apply(self, state: PartitionRegistration) -> None:
        """Apply newer metadata of the same leader epoch.

        The controller's response may have contained this state already. In that case this metadata must not end the
        pending proposal, which is newer.
        """
        if state.partition_epoch > self.partition_epoch:
            self.isr.commit(state.isr)
            self.partition_epoch = state.partition_epoch

    def accept(self, proposal: IsrProposal, isr: Iterable[BrokerId], leader_epoch: int, partition_epoch: int) -> bool:
        """Apply an accepted proposal. Return False if newer metadata has decided it."""
        if self.isr.pending is not proposal:
            return False
        if leader_epoch != self._leader_epoch or partition_epoch < self.partition_epoch:
            return False
        self.isr.commit(isr)
        self.partition_epoch = partition_epoch
        self._settings.isr_counts.expands += bool(proposal.joining)
        self._settings.isr_counts.shrinks += bool(proposal.leaving)
        return True

    def refuse(self, proposal: IsrProposal, error: ErrorCode) -> bool:
        """Handle a refused proposal. Return True if it must be sent again."""
        if self.isr.pending is not proposal:
            return False
        self._settings.isr_counts.failed += 1
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
