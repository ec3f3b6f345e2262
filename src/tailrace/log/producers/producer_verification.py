"""Verification: the check of a transactional producer that has no open transaction in a partition.

Before its first batch is accepted, the coordinator is asked if the partition is part of its transaction. Otherwise a
late batch would open a transaction that is never ended. A refused batch is sent again, and later batches may arrive
before it. Until one is accepted, no batch with a sequence above the lowest waiting one is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Verification:
    began_ms: int
    lowest_sequence: int
    epoch: int
    bumps_epoch: bool  # the producer ends every transaction under a new epoch, so each begins with sequence 0

    def add(self, sequence: int, epoch: int) -> None:
        """Add another batch that waits for the check."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
