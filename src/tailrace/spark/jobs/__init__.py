"""Work over whole logs as Spark jobs, one sub-package per job.

A job plans on the driver and runs the log's own code in tasks.

    job.py            the frame of all jobs: plan, run tasks, collect
    spark_session.py  the Spark session of a job
    place.py          Place: a data directory or a cluster
    directories.py    data directories, narrowed to topics and partitions
    packing.py        packs small pieces of work into tasks of similar size
    task_progress.py  progress of the tasks on a terminal
    errors.py         JobError
    verify/           `job verify` and `job reindex`
    compact/          `job compact`
    export/           `job export`
    diff/             `job diff`
    replay/           `job replay`
    load/             `job load`
    profile/          `job profile`
"""
