"""Log directories: the logs of all partitions, locks, checkpoints, and work beside the thread that changes logs.

A LogDirectory takes its lock, opens every partition, and from then on creates, deletes and checkpoints logs. Work that
takes long has a `run` for any thread and an `apply` for the thread that changes the logs.

    log_directory.py          LogDirectory: the logs below one log.dir
    log_directories.py        LogDirectories: several log.dirs as one
    partition_folders.py      finds the folders of partitions
    data_directory.py         DataDirectory: the contents of a directory by names and checkpoints, without opening logs
    directory_checkpoints.py  the checkpoint files with an offset for each partition
    new_logs.py               makes logs, many at a time
    log_creation.py           LogCreation: makes logs as background work
    log_renames.py            LogRenames: renames the folders of deleted logs as background work
    directory_work.py         DirectoryWork: the work of logs and directory on another thread
    sealed_flush.py           SealedFlush and LogFlush: fsync as background work
    epoch_writes.py           EpochWrites: leader epoch files as background work
    serial_work.py            SerialWork: background work in order
    shards_file.py            `shards.json`: a directory with the data of several brokers
    bulk_load_proposal.py     the files of a bulk load for a broker that is running
"""
