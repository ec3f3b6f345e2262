"""`tailrace job`: work over whole logs on Spark. Spark is imported only when a job runs.

job_arguments.py          the parser of `job` and its verbs
job.py                    options and the Spark session that all verbs share
small_data.py             a hint for jobs over little data: `tailrace log` is quicker
topic_settings.py         topic settings of a job: the directory's metadata, overridden by -o
topic_configs_on_disk.py  topic configs read from a directory's metadata log
verify.py                 `job verify`: check data directories
reindex.py                `job reindex`: rebuild the indexes of sealed segments
compact.py                `job compact`: the work of the broker's cleaner
export.py                 `job export`: topics to Parquet, Iceberg or Delta, each record once
export_tables.py          `job export --to iceberg|delta`, also continuously
export_typed.py           typed columns of `job export`
diff.py                   `job diff`: compare two copies of a log
replay.py                 `job replay`: produce a range of a log into another cluster
load.py                   `job load`: a table or files into a topic
profile.py                `job profile`: keys, sizes, skew and throughput of a log
"""
