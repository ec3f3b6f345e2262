"""Verification: a transactional producer that asked to write to a partition where it has no transaction open yet.

Before its first batch is taken, the coordinator is asked whether the partition is part of its transaction; otherwise a
batch that comes late would open a transaction that nobody ends. A batch that had to be refused is sent again, and
batches that follow it may come first: until one is taken, none with a higher sequence than the lowest asked for may be.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Verification:
    began_ms: int
    lowest_sequence: int
    epoch: int
    bumps_epoch: bool  # a producer that ends every transaction under a new epoch, so each begins with sequence 0

    def add(self, sequence: int, epoch: int) -> None:
        """Another batch has asked."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
