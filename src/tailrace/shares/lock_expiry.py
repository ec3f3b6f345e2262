"""expire_locks: releases records whose acquisition lock has expired."""

from __future__ import annotations

from tailrace.shares.delivery_settings import DeliverySettings
from tailrace.shares.in_flight import InFlightBatch, RecordRun
from tailrace.shares.share_partition import Change, SharePartition


def expire_locks(partition: SharePartition, settings: DeliverySettings, now_ms: int) -> Change:
    """Release records whose lock has expired. This is final, even if the returned change cannot be persisted."""
    change = Change()
    if not partition.take_deadline(now_ms):
        return change
    for batch in partition.batches:
        for run in tuple(batch.runs):
            if run.deadline_ms is None or run.rollback is not None:
                continue
            if run.deadline_ms > now_ms:
                partition.lock_until(run.deadline_ms)
            else:
                _expire(partition, batch, run, change, settings)
    return change


def _expire(
    partition: SharePartition, batch: InFlightBatch, run: RecordRun, change: Change, settings: DeliverySettings
) -> None:
    for piece in partition.cut_at_start(batch, run):
        piece.expire(partition.state_of_given_up(piece), settings.delivery_count_limit)
        change.add(batch, piece)
        if piece.is_terminal:
            partition.note_done(piece)
        else:
            partition.look_for_available()
