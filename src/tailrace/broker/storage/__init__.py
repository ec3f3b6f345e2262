"""The logs of the partitions that this broker hosts.

At a start the directories are locked and loaded (`storage_startup.py`). From then on `image_publisher.py` carries out
every change of the metadata: it creates, configures and deletes logs, and gives partitions their roles.

    storage_startup.py       from settings to opened logs
    load_progress.py         log lines about opening
    image_publisher.py       ImagePublisher: carries out changes of the metadata
    new_replicas.py          NewReplicas: replicas that have no log yet
    housekeeping.py          Housekeeping: retention, flushes and checkpoints
    cleaning.py              LogCleaning: compaction in the background
    directory_moves.py       DirectoryMoves: partitions that move to another log directory
    cordoned_directories.py  CordonedDirectories: directories that get no new partitions
    disk_failures.py         DiskFailures: a log directory that fails while the broker runs
    load_proposals.py        LoadProposals: finished segments that a Spark job has left for a log
"""
