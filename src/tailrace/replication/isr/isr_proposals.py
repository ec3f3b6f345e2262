"""IsrProposals: sends this broker's ISR proposals to the controller (AlterPartition) until they are decided.

One request is under way at a time, and later proposals go with the next. A proposal that newer metadata has decided is
dropped. Lagging replicas are searched for every half of replica.lag.time.max.ms, as in Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from tailrace.diagnostics.limited_log import LimitedLog
from tailrace.metadata.image.partition_registration import RECOVERED
from tailrace.model.errors import ErrorCode
from tailrace.model.ids import TopicPartition
from tailrace.protocol.messages import AlterPartitionRequest
from tailrace.replication.hosted_partitions import HostedPartitions
from tailrace.replication.isr.isr_state import IsrProposal
from tailrace.replication.leader import LeaderRole
from tailrace.waiting.outbox import Answered, Failed, Failure

RETRY_MS: Final = 100

_log = logging.getLogger(__name__)


class AltersPartitions(Protocol):
    """The controller's method that a leader needs."""

    def alter_partition(
        self, topics: Sequence[AlterPartitionRequest.TopicData], answered: Answered, failed: Failed, now_ms: int
    ) -> None: ...


class IsrProposals:
    def __init__(
        self,
        controller: AltersPartitions,
        partitions: HostedPartitions,
        moved: Callable[[TopicPartition, int], None],
        *,
        lag_ms_max: int,
        now_ms: int,
    ) -> None:
        """`moved` is called for a partition whose high watermark a decision has moved."""
        self._controller = controller
        self._partitions = partitions
        self._moved = moved
        self._interval_ms = max(lag_ms_max // 2, 1)
        self._check_ms = now_ms + self._interval_ms
        self._waiting: dict[TopicPartition, IsrProposal] = {}
        self._has_request = False
        self._send_ms = 0
        self._limited_log = LimitedLog(_log)

    def propose(self, key: TopicPartition, proposal: IsrProposal) -> None:
        """Send a proposal with the next tick."""
        self._waiting[key] = proposal

    # Timers

    def tick(self, now_ms: int) -> None:
        if now_ms >= self._check_ms:
            self._check_ms = now_ms + self._interval_ms
            for partition in self._partitions.leaders():
                assert partition.leader is not None
                partition.leader.isr_changes.shrink(now_ms)
        if self._waiting and not self._has_request and now_ms >= self._send_ms:
            self._send(now_ms)

    def next_deadline_ms(self) -> int:
        return min(self._send_ms, self._check_ms) if self._waiting and not self._has_request else self._check_ms

    # Requests

    def _send(self, now_ms: int) -> None:
        taken, self._waiting = self._waiting, {}
        sent: dict[TopicPartition, IsrProposal] = {}
        topics: dict[bytes, list[AlterPartitionRequest.PartitionData]] = {}
        names: dict[tuple[bytes, int], TopicPartition] = {}
        for key, proposal in taken.items():
            partition = self._partitions.get(key)
            if partition is not None and self._leader_of(key, proposal) is not None:
                sent[key] = proposal
                names[partition.topic_id, key.partition] = key
                topics.setdefault(partition.topic_id, []).append(_partition_data(key.partition, proposal))
        if not sent:
            return
        self._has_request = True
        self._controller.alter_partition(
            [AlterPartitionRequest.TopicData(topic_id=one, partitions=found) for one, found in topics.items()],
            partial(self._answered, sent, names),
            partial(self._failed, sent),
            now_ms,
        )

    def _leader_of(self, key: TopicPartition, proposal: IsrProposal) -> LeaderRole | None:
        """Return the leader if it still waits for the decision on this proposal."""
        partition = self._partitions.get(key)
        leader = None if partition is None else partition.leader
        return leader if leader is not None and leader.isr.pending is proposal else None

    def _failed(self, sent: Mapping[TopicPartition, IsrProposal], failure: Failure, now_ms: int) -> None:
        self._has_request = False
        self._limited_log.write(logging.WARNING, failure.name, now_ms, "AlterPartition failed", error=failure.value)
        self._retry(sent, now_ms)

    def _retry(self, proposals: Mapping[TopicPartition, IsrProposal], now_ms: int) -> None:
        for key, proposal in proposals.items():
            self._waiting.setdefault(key, proposal)
        self._send_ms = now_ms + RETRY_MS

    # Responses

    def _answered(
        self,
        sent: Mapping[TopicPartition, IsrProposal],
        names: Mapping[tuple[bytes, int], TopicPartition],
        response: Any,
        now_ms: int,
    ) -> None:
        self._has_request = False
        if response.error_code:
            code = ErrorCode(response.error_code)
            self._limited_log.write(logging.WARNING, code.name, now_ms, "AlterPartition refused", error=code.name)
            self._retry(sent, now_ms)
            return
        undecided = dict(sent)
        for topic in response.topics:
            for answer in topic.partitions:
                key = names.get((topic.topic_id, answer.partition_index))
                if key is not None and self._try_decide(key, sent[key], answer, now_ms):
                    del undecided[key]
        if undecided:
            self._retry(undecided, now_ms)

    def _try_decide(self, key: TopicPartition, proposal: IsrProposal, answer: Any, now_ms: int) -> bool:
        leader = self._leader_of(key, proposal)
        if leader is None:
            return True
        if answer.error_code:
            code = ErrorCode(answer.error_code)
            _log.info("%s: the controller responded with %s to %s", key, code.name, proposal)
            return not leader.isr_changes.refuse(proposal, code)
        if leader.isr_accepted(proposal, answer.isr, answer.leader_epoch, answer.partition_epoch, now_ms):
            self._moved(key, now_ms)
        _log.info("%s: the ISR is %s in partition epoch %d", key, answer.isr, answer.partition_epoch)
        return True


def _partition_data(index: int, proposal: IsrProposal) -> AlterPartitionRequest.PartitionData:
    state = AlterPartitionRequest.BrokerState
    return AlterPartitionRequest.PartitionData(
        partition_index=index,
        leader_epoch=proposal.leader_epoch,
        new_isr_with_epochs=[state(broker_id=one, broker_epoch=epoch) for one, epoch in proposal.isr],
        leader_recovery_state=RECOVERED,  # the log is open, so an unclean leader has already recovered
        partition_epoch=proposal.partition_epoch,
    )
