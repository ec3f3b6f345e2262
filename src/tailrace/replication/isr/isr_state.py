"""IsrState: the in-sync replicas, as written by the controller and as proposed by the leader.

- `committed` is what the controller has written. Only it counts for min.insync.replicas and for elections.
- A change is proposed to the controller, one at a time, with the partition epoch that it is based on.
- The high watermark waits for the replicas in `maximal`. A replica that is about to join counts at once: waiting for
  one more is always safe. A replica that is about to be dropped counts until the controller has dropped it. Otherwise
  records could be acknowledged that a later leader does not have.

        commit ──► committed ──propose──► pending ──commit (controller's response, or newer metadata)──► committed
                       ▲                     │
                       └─────withdraw────────┘   the controller responded that nothing was changed
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tailrace.model.ids import BrokerId, LeaderEpoch

UNKNOWN_BROKER_EPOCH = -1


class IsrProposal(NamedTuple):
    """The ISR that a leader proposes: each member with the broker epoch of its latest fetch."""

    leader: BrokerId
    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr: tuple[tuple[BrokerId, int], ...]
    joining: frozenset[BrokerId] = frozenset()
    leaving: frozenset[BrokerId] = frozenset()


class IsrState:
    __slots__ = ("committed", "maximal", "pending")

    def __init__(self, committed: Iterable[BrokerId] = ()) -> None:
        self.committed = frozenset(committed)
        self.maximal = self.committed
        self.pending: IsrProposal | None = None

    def commit(self, isr: Iterable[BrokerId]) -> None:
        """Set the ISR that the controller has written; a pending proposal is decided or outdated."""
        self.committed = self.maximal = frozenset(isr)
        self.pending = None

    def propose(self, proposal: IsrProposal) -> None:
        assert self.pending is None, f"{proposal} was proposed while {self.pending} is pending"
        self.pending = proposal
        self.maximal = self.committed | proposal.joining

    def withdraw(self) -> None:
        """Drop the proposal: the controller refused it and changed nothing."""
        self.pending = None
        self.maximal = self.committed

    def __repr__(self) -> str:
        return f"IsrState(committed={sorted(self.committed)}, maximal={sorted(self.maximal)})"
