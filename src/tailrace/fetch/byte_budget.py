"""ByteBudget: how much each partition of a fetch may still return.

- `max_bytes` is for the whole response, `partition_max_bytes` for each partition; partitions take theirs in order.
- Until something was returned, a partition returns one batch even if that exceeds both: otherwise a batch larger than
  the limits would stop a consumer for good. From then on the limits hold strictly.
- Versions 0 to 2 know the limits as hard ones: nothing ever exceeds them.
- A first batch that is cut short by the limit is of no use from version 3 on and left out: the partition comes first in
  some later fetch, and then it is returned whole.
"""

from __future__ import annotations


class ByteBudget:
    __slots__ = ("at_least_one", "is_hard", "left")

    def __init__(self, max_bytes: int, *, is_hard: bool = False) -> None:
        self.left = max_bytes
        self.is_hard = is_hard
        self.at_least_one = not is_hard  # whether the next batch is returned whatever its size

    def share(self, partition_max_bytes: int) -> int:
        """How much a partition may return."""
        left = self.left
        return partition_max_bytes if partition_max_bytes < left else left

    def keeps(self, first_entry_incomplete: bool) -> bool:
        """Whether a read is worth returning."""
        return self.is_hard or not first_entry_incomplete

    def take(self, size: int) -> None:
        """A partition returns so much."""
        if size > 0:
            self.at_least_one = False
        left = self.left - size
        self.left = left if left > 0 else 0
