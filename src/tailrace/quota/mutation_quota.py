"""MutationQuotas: how many partitions a client may create and delete per second, all topics together.

A client may begin while its bucket is not below zero, however much it asks for; what it asked for is then paid off.

    strict      what begins below zero is refused with THROTTLING_QUOTA_EXCEEDED; the client is told when to come again
    permissive  for clients that do not know this error: everything is carried out, and the connection pauses after
"""

from __future__ import annotations

import math
from typing import Final

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.quota.limits import Owner, QuotaLimits, Quotas
from tailrace.quota.rate import TokenBucket, Windows
from tailrace.quota.rate_quota import INT_MAX

_FORGET_MS: Final = 3_600_000  # a debt is forgotten after this long without a request, as Kafka does


class MutationQuota:
    """What one request may change."""

    def __init__(self, bucket: TokenBucket | None, per_second: float, now_ms: int, *, strict: bool) -> None:
        self._bucket = bucket
        self._per_second = per_second
        self._now_ms = now_ms
        self._strict = strict
        self.throttle_ms = 0  # how long its connection has to pause

    def charge(self, partitions: int) -> None:
        """So many partitions are about to be created or deleted; THROTTLING_QUOTA_EXCEEDED if they must not be."""
        bucket = self._bucket
        if bucket is None:
            return
        if self._strict:
            bucket.fill(self._per_second, self._now_ms)
            if bucket.tokens < 0:
                self._pause(bucket)
                raise KafkaError(
                    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                    f"controller_mutation_rate is exceeded: come again in {self.throttle_ms} ms",
                )
        bucket.take(partitions, self._per_second, self._now_ms)
        if not self._strict and bucket.tokens < 0:
            self._pause(bucket)

    def _pause(self, bucket: TokenBucket) -> None:
        self.throttle_ms = min(math.floor(-bucket.tokens / self._per_second * 1_000 + 0.5), INT_MAX)


class MutationQuotas:
    def __init__(self, windows: Windows) -> None:
        self.limits = QuotaLimits("controller_mutation_rate")
        self._windows = windows
        self._buckets: dict[Owner, TokenBucket] = {}
        self._sweep_ms = 0

    def __len__(self) -> int:
        """How many owners are remembered."""
        return len(self._buckets)

    def update(self, quotas: Quotas) -> None:
        self.limits.update(quotas)

    def of(self, user: str, client_id: str, now_ms: int, *, strict: bool) -> MutationQuota:
        """What a request of this client may change."""
        bucket, limit = None, None
        if self.limits.is_enabled:
            if now_ms >= self._sweep_ms:
                self._sweep(now_ms)
            owner = self.limits.owner(user, client_id)
            limit = self.limits.limit(owner)
            if limit is None:
                self._buckets.pop(owner, None)  # without a limit it fills at once
            else:
                bucket = self._buckets.setdefault(owner, TokenBucket(self._windows))
        return MutationQuota(bucket, limit or 0.0, now_ms, strict=strict)

    def _sweep(self, now_ms: int) -> None:
        """A bucket that had something and has been left alone for a whole window is full, as a new one is."""
        self._sweep_ms = now_ms + self._windows.span_ms
        silent_ms = now_ms - self._windows.span_ms
        for owner, bucket in list(self._buckets.items()):
            if bucket.last_ms <= (silent_ms if bucket.tokens >= 0 else now_ms - _FORGET_MS):
                del self._buckets[owner]
