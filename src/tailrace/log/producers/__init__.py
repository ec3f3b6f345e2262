"""States of idempotent and transactional producers: sequence checks, open transactions, snapshots, replay.

An append checks its batches with `producer_changes`, and applies the changes when they are written.
Recovery and truncation load the latest snapshot and replay the batches after it.

    producer_states.py        ProducerStates: all producers of a partition, their open transactions and snapshots
    producer_state.py         ProducerState: the last batches of one producer; the rule for sequence numbers
    producer_changes.py       ProducerChanges: the changes of placed batches, applied when these are written
    producer_append.py        ProducerAppend: the full check of one producer's batches in one append
    producer_verification.py  Verification: a transaction that the coordinator has yet to confirm for a partition
    pending_snapshot.py       PendingSnapshot: a snapshot of many producers, encoded some at a time
    producer_snapshot.py      the .snapshot file
    producer_replay.py        brings the states from the latest snapshot to the end of the log
"""
