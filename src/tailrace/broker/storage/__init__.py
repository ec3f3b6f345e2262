"""The logs of the partitions that this broker hosts.

At the start, the directories are locked and loaded (`storage_startup.py`). After that, `image_publisher.py` applies
every change of the metadata: it creates, configures and deletes logs, and gives partitions their roles.

    storage_startup.py       locking and loading of the log directories
    load_progress.py         log lines about the loading
    image_publisher.py       ImagePublisher: applies changes of the metadata
    config_updates.py        ConfigUpdates: applies changed settings to the logs
    new_replicas.py          NewReplicas: creates the logs of new replicas
    housekeeping.py          Housekeeping: retention, flushes and checkpoints
    cleaning.py              LogCleaning: compaction in the background
    directory_moves.py       DirectoryMoves: moves of partitions to another log directory
    cordoned_directories.py  CordonedDirectories: directories that get no new partitions
    disk_failures.py         DiskFailures: log directories that fail while the broker runs
    load_proposals.py        LoadProposals: adopts segments that a Spark job has built
    remote/                  tiered storage: tasks, metadata topic, reads
"""
