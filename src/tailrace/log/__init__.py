"""One partition's log on disk, byte for byte as Apache Kafka keeps it. May import: records, protocol, model.

A log is a list of segments. Records are appended to the last one, the active segment, and read from any of them.

    append   partition_log → append (place: check, offsets, producers; write: bytes, indexes, bounds) → segment
    read     partition_log → log_read → segment_list → segment → indexes/ → batch_reader
    open     recovery/ makes a PartitionLog of a folder; directories/ has all logs of a broker

The log itself
    partition_log.py       PartitionLog: append, read, roll, flush, truncate, delete; the invariants of a log
    append.py              LogAppend: batches are placed one by one and written together
    replicated_batches.py  the batches of a leader that a follower appends
    replicated_kernels.py  the loop over these batches, compiled
    roll_policy.py         when a new segment has to be started
    watermarks.py          log start, last stable offset, high watermark, log end
    log_bounds.py          LogBounds: moves the high watermark and the first unstable offset
    durability.py          Durability: the recovery point, and the flushes that move it
    leader_epochs.py       LeaderEpochs: the first offset of each leader epoch
    retention.py           which segments must be deleted, and why
    removal.py             Removal: files are renamed at once and removed later
    deferred.py            Deferred: work that waits for its time

Segments and reads
    segment.py             Segment: a .log file with its indexes
    segment_list.py        SegmentList: the segments of a log by base offset
    segment_swap.py        replaces segments so that a crash leaves the old or the new ones
    batch_reader.py        walks the batches of a log file
    log_read.py            finds the bytes from an offset on
    small_read.py          a read that returns a few bytes at once
    timestamp_lookup.py    finds the first record at or after a time
    position.py            LogPosition and FileSlice: where records are

Sub-packages
    indexes/               the offset, time and transaction index of a segment
    producers/             states of idempotent and transactional producers
    recovery/              opens a log after a stop or a crash
    compaction/            removes records that a later record of the same key replaces
    directories/           log directories with the logs of all partitions
    disk/                  files, their names, checkpoint files
    inspect/               the commands of `tailrace log`
"""
