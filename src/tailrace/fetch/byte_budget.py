"""ByteBudget: how many bytes each partition of a fetch may still return.

- `max_bytes` limits the whole response, `partition_max_bytes` each partition. Partitions use the budget in order.
- The first partition with records returns one batch even if that exceeds both limits. Otherwise a batch larger than the
  limits would block a consumer forever. After that first batch the limits are strict.
- In versions 0 to 2 the limits are hard: nothing ever exceeds them.
- From version 3 on, a first batch that the limit would cut is left out. The partition comes first in a later fetch and
  is then returned whole.
"""

from __future__ import annotations


class ByteBudget:
    __slots__ = ("at_least_one", "is_hard", "left")

    def __init__(self, max_bytes: int, *, is_hard: bool = False) -> None:
        self.left = max_bytes
        self.is_hard = is_hard
        self.at_least_one = not is_hard  # True if the next batch is returned whatever its size

    def share(self, partition_max_bytes: int) -> int:
        """Return how many bytes a partition may return."""
        left = self.left
        return partition_max_bytes if partition_max_bytes < left else left

    def keeps(self, first_entry_incomplete: bool) -> bool:
        """Return True if the read is included in the response."""
        return self.is_hard or not first_entry_incomplete

    def take(self, size: int) -> None:
        """Subtract the bytes that a partition returns."""
        if size > 0:
            self.at_least_one = False
        left = self.left - size
        self.left = left if left > 0 else 0

    def reserve(self, size: int) -> None:
        """Subtract the most that a partition may return later. Whether it returns a batch is not known yet."""
        self.left = max(self.left - size, 0)
