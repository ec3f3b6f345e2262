"""IsrState: which replicas are in sync, as the controller knows it and as the leader would like it.

- `committed` is what the controller has written; only it counts for min.insync.replicas and for elections.
- A change is proposed to the controller, one at a time, with the partition epoch it builds on.
- `maximal` is what the high watermark waits for. A replica about to join counts at once: waiting for one more is safe
  whatever the controller decides. A replica about to be dropped counts until the controller has dropped it: not waiting
  for it could acknowledge what a later leader does not have.

        commit ──► committed ──propose──► pending ──commit (controller's answer, or newer metadata)──► committed
                       ▲                     │
                       └─────withdraw────────┘   the controller said that nothing was changed
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tailrace.model.ids import BrokerId, LeaderEpoch

UNKNOWN_BROKER_EPOCH = -1


class IsrProposal(NamedTuple):
    """The ISR that a leader asks the controller for: each member with the broker epoch it last fetched with."""

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
        """The controller has written this one; what was proposed is decided or out of date."""
        self.committed = self.maximal = frozenset(isr)
        self.pending = None

    def propose(self, proposal: IsrProposal) -> None:
        assert self.pending is None, f"{proposal} while {self.pending} is undecided"
        self.pending = proposal
        self.maximal = self.committed | proposal.joining

    def withdraw(self) -> None:
        """The controller refused, and said that nothing was changed."""
        self.pending = None
        self.maximal = self.committed

    def __repr__(self) -> str:
        return f"IsrState(committed={sorted(self.committed)}, maximal={sorted(self.maximal)})"
