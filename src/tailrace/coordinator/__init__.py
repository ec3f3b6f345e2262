"""Coordinators: replicated state machines, one per partition of an internal topic that is led here.

May import: replication and below. Nothing here uses a clock, a socket or randomness.

A request yields a StateChange: records and a response. The runtime appends the records, replays them into the state,
and sends the response once they are committed. A new leader loads the partition by replaying its log.

    request ──► runtime ──► shard ──► StateChange ──► append ──► replay ──► committed ──► response

    shard.py             CoordinatorShard: the interface of a state machine; records and state changes
    runtime.py           CoordinatorRuntime: finds the shard of a partition, loads and unloads it, runs its timers
    shard_place.py       ShardPlace: a partition led here, with its shard and the shard's state
    loading.py           a partition's log read and replayed
    shard_writer.py      one change appended, replayed and answered
    change_batches.py    the records of a change as a batch
    delayed_commit.py    a response that waits for the high watermark
    coordinator_log.py   the interface of the log that a shard writes to
    timers.py            Timers: operations of a shard that are due later
    failures.py          unexpected errors of a shard: logged, counted, survived
    key_partition.py     the partition that a group or a transactional id belongs to
    groups/              the group coordinator: `__consumer_offsets`
    offsets/             the committed offsets of groups
    transactions/        the transaction coordinator: `__transaction_state`
"""
