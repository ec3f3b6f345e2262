"""One partition's log on disk, byte for byte as Apache Kafka keeps it. May import: records, protocol, model.

A log is a list of segments. Records are appended to the last one, the active segment, and read from any of them.

    append   partition_log → append (place: check, offsets, producers; write: bytes, indexes, bounds) → segments/
    read     partition_log → reading/ → segments/ → segments/indexes/
    open     recovery/ makes a PartitionLog of a folder; directories/ has all logs of a broker

    partition_log.py  PartitionLog: append, read, roll, flush, truncate, delete; the invariants of a log
    append.py         LogAppend: batches are placed one by one and written together
    watermarks.py     log start, last stable offset, high watermark, log end
    log_bounds.py     LogBounds: moves the high watermark and the first unstable offset
    leader_epochs.py  LeaderEpochs: the first offset of each leader epoch

    segments/         .log files with their indexes, and when a new one is started
    reading/          finds the bytes for an offset or a time
    replicated/       the batches of a leader that a follower appends
    producers/        states of idempotent and transactional producers
    upkeep/           flushes, retention, removal of files
    recovery/         opens a log after a stop or a crash
    compaction/       removes records that a later record of the same key replaces
    directories/      log directories with the logs of all partitions
    disk/             files, their names, checkpoint files
    inspect/          the commands of `tailrace log`
"""
