"""MutationQuotas: how many partitions a client may create and delete per second, over all topics.

A client may start a request of any size while its token bucket is not below zero. The request may take the bucket below
zero, and the bucket then refills.

    strict      a request that starts below zero is refused with THROTTLING_QUOTA_EXCEEDED and the time to wait
    permissive  for clients that do not know this error: every request is carried out, then the connection is paused
"""

from __future__ import annotations

import math
from typing import Final

from tailrace.model.errors import ErrorCode, KafkaError
from tailrace.quota.limits import Owner, QuotaLimits, Quotas
from tailrace.quota.rate import TokenBucket, Windows
from tailrace.quota.rate_quota import INT_MAX

_FORGET_MS: Final = 3_600_000  # a bucket is removed after this time without a request, as in Kafka


class MutationQuota:
    """The quota for the changes of one request."""

    def __init__(self, bucket: TokenBucket | None, per_second: float, now_ms: int, *, strict: bool) -> None:
        self._bucket = bucket
        self._per_second = per_second
        self._now_ms = now_ms
        self._strict = strict
        self.throttle_ms = 0  # the time for which the connection is paused

    def charge(self, partitions: int) -> None:
        """Charge partitions that are about to be created or deleted. Raise THROTTLING_QUOTA_EXCEEDED if the quota
        forbids it."""
        bucket = self._bucket
        if bucket is None:
            return
        if self._strict:
            bucket.fill(self._per_second, self._now_ms)
            if bucket.tokens < 0:
                self._pause(bucket)
                raise KafkaError(
                    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                    f"controller_mutation_rate is exceeded; retry in {self.throttle_ms} ms",
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
        """Return the number of owners with a bucket."""
        return len(self._buckets)

    def update(self, quotas: Quotas) -> None:
        self.limits.update(quotas)

    def of(self, user: str, client_id: str, now_ms: int, *, strict: bool) -> MutationQuota:
        """Return the quota for one request of this client."""
        bucket, limit = None, None
        if self.limits.is_enabled:
            if now_ms >= self._sweep_ms:
                self._sweep(now_ms)
            owner = self.limits.owner(user, client_id)
            limit = self.limits.limit(owner)
            if limit is None:
                self._buckets.pop(owner, None)  # without a limit the bucket would be full at once
            else:
                bucket = self._buckets.setdefault(owner, TokenBucket(self._windows))
        return MutationQuota(bucket, limit or 0.0, now_ms, strict=strict)

    def _sweep(self, now_ms: int) -> None:
        """Remove buckets that were not used for a whole window and are not below zero. They are full, like a new
        bucket."""
        self._sweep_ms = now_ms + self._windows.span_ms
        silent_ms = now_ms - self._windows.span_ms
        for owner, bucket in list(self._buckets.items()):
            if bucket.last_ms <= (silent_ms if bucket.tokens >= 0 else now_ms - _FORGET_MS):
                del self._buckets[owner]
